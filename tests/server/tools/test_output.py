"""What is printed is bounded where it is printed, and kept whole there."""

import asyncio
import gc
import re
from pathlib import Path
from typing import Any, Literal

import pytest

from agent.sandbox.e2b.box import E2BBox, OwnedSandbox
from server.tools.conftest import CallTool
from support.e2b_process import isolation_missing

PAGE_KB = 4


def resident_kb() -> int:
    """Return the memory this process holds."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_KB


LINES = (
    "for start in range(0, 400_000, 1000):"
    " print(*[f'line {n} ' + '.' * 40 for n in range(start, start + 1000)], sep=chr(10))"
)
"""About 21 MB."""
FEWER = LINES.replace("400_000", "20_000")


async def test_twenty_megabytes_of_a_command_stay_in_the_sandbox(box: E2BBox, handle: OwnedSandbox) -> None:
    """Head and tail come back, the whole lies in a file, and this process does not grow (A31, A32)."""
    await box.run_command("echo warm", timeout_s=60)
    before = resident_kb()
    result = await box.run_command(f'python3 -c "{LINES}"; echo late >&2', timeout_s=60)
    assert resident_kb() - before < 4 * 1024
    assert (result.exit_code, result.stderr) == (0, "late\n")
    assert result.stdout.startswith("line 0 ")
    assert result.stdout.endswith(f"line 399999 {'.' * 40}\n")
    assert len(result.stdout.encode()) < 140_000
    file = result.spooled["stdout"]
    assert file.total_bytes == file.kept_bytes > 20_000_000
    assert f"… {file.total_bytes - 131_072} bytes left out …" in result.stdout
    size = await handle.commands.run(f"wc -c < {file.path}")
    assert int(size.stdout) == file.total_bytes


async def test_twenty_megabytes_of_a_cell_stay_in_the_sandbox(box: E2BBox, handle: OwnedSandbox) -> None:
    """As of a command, though the SDK itself keeps all that a cell sends (A31, A32)."""
    await box.run_code("print('warm')", timeout_s=60)
    before = resident_kb()
    result = await box.run_code(LINES, timeout_s=60)
    assert resident_kb() - before < 4 * 1024
    assert result.error is None
    assert result.stdout.startswith("line 0 ")
    assert result.stdout.endswith(f"line 399999 {'.' * 40}\n")
    file = result.spooled["stdout"]
    size = await handle.commands.run(f"wc -c < {file.path}")
    assert int(size.stdout) == file.total_bytes > 20_000_000


@pytest.mark.parametrize("where", ["command", "cell"])
async def test_one_line_of_five_megabytes_survives(box: E2BBox, where: str) -> None:
    """No line break is needed, and no character of several bytes is cut in half."""
    code = "print('€' * 1_700_000)"
    result = (
        await box.run_command(f'python3 -c "{code}"', timeout_s=60)
        if where == "command"
        else await box.run_code(code, timeout_s=60)
    )
    head, gap, tail = result.stdout.partition("\n… ")
    assert set(head) == {"€"}
    assert gap
    assert set(tail.split("…\n", 1)[1].rstrip("\n")) == {"€"}
    assert result.spooled["stdout"].total_bytes == 5_100_001


async def test_a_long_result_of_a_cell_is_cut_and_kept(box: E2BBox, handle: OwnedSandbox) -> None:
    """The value of the last expression is bounded as what is printed is."""
    result = await box.run_code("display('small')\n'x' * 5_000_000", timeout_s=60)
    assert len(result.results[1].data["text/plain"]) < 140_000
    file = result.spooled["result-2"]
    head = await handle.commands.run(f"head -c 5 {file.path}; wc -c < {file.path}")
    assert head.stdout == "'xxxx5000002\n"


async def test_little_output_leaves_no_file(box: E2BBox, handle: OwnedSandbox) -> None:
    """What is shown whole anyway is not written to the disk."""
    result = await box.run_command("echo a; echo b >&2", timeout_s=60)
    assert result.spooled == {}
    assert (await box.run_code("print(1)", timeout_s=60)).spooled == {}


async def test_a_timed_out_command_still_shows_its_last_words(box: E2BBox) -> None:
    """The tail is fetched by the request that ends the command."""
    result = await box.run_command(f'python3 -c "{FEWER}"; echo last; exec sleep 60', timeout_s=5)
    assert result.timed_out
    assert result.stdout.startswith("line 0 ")
    assert result.stdout.endswith("last\n")
    assert result.spooled["stdout"].total_bytes > 800_000


async def test_a_timed_out_cell_still_shows_its_last_words(box: E2BBox) -> None:
    """The kernel keeps what it printed, for a request after the interruption."""
    result = await box.run_code(f"{FEWER}\nprint('last')\nwhile True: pass", timeout_s=5)
    assert result.timed_out
    assert result.stdout.endswith("last\n")


async def test_a_program_left_in_the_background_does_not_hold_a_command_back(
    box: E2BBox, handle: OwnedSandbox
) -> None:
    """The result comes at once; what the program prints later is in the file that the result names."""
    result = await box.run_command("(sleep 1; echo later; sleep 0.5) & echo now", timeout_s=30)
    assert (result.exit_code, result.stdout) == (0, "now\n")
    assert result.duration_s < 1
    file = result.spooled["stdout"]
    assert file.goes_on
    async with asyncio.timeout(10):
        while "later" not in (text := await handle.files.read(file.path)):
            pass
    assert text == "now\nlater\n"


async def test_output_arrives_while_a_call_runs_and_without_marks(box: E2BBox) -> None:
    """Both streams are heard live, and what is internal to the spool is never shown."""
    heard: list[tuple[str, str]] = []

    async def hear(stream: Literal["stdout", "stderr"], piece: str) -> None:
        heard.append((stream, piece))

    await box.run_command("echo a; sleep 0.2; echo b >&2; seq 1 100000", timeout_s=60, on_output=hear)
    await box.run_code("for n in range(100_000): print(n)", timeout_s=60, on_output=hear)
    assert heard[0] == ("stdout", "a\n")
    assert ("stderr", "b\n") in heard
    assert not any("\x1e" in piece for _, piece in heard)
    assert sum(len(piece) for _, piece in heard) < 140_000


@pytest.mark.skipif(isolation_missing() is not None, reason="root writes where nobody may write")
async def test_output_that_cannot_be_kept_does_not_stop_a_call(box: E2BBox, handle: OwnedSandbox) -> None:
    """A folder that cannot be written costs the file, not the command or the cell."""
    await handle.commands.run("chmod 555 /tmp/agent-output")
    try:
        result = await box.run_command("seq 100000", timeout_s=60)
        cell = await box.run_code("for n in range(100_000): print(n)", timeout_s=60)
    finally:
        await handle.commands.run("chmod 1777 /tmp/agent-output")
    assert (result.exit_code, result.spooled) == (0, {})
    assert result.stdout.endswith("\n100000\n")
    assert (cell.error, cell.spooled) == (None, {})
    assert cell.stdout.endswith("\n99999\n")


async def test_a_template_without_python_is_bounded_on_arrival(box: E2BBox) -> None:
    """No file is kept there, and still neither this process nor the result grows; exit codes hold."""
    hidden = {"BASH_FUNC_command%%": "() { return 1; }"}
    before = resident_kb()
    result = await box.run_command("seq 2000000; exit 5", timeout_s=60, envs=hidden)
    assert resident_kb() - before < 4 * 1024
    assert (result.exit_code, result.spooled) == (5, {})
    assert result.stdout.startswith("1\n2\n")
    assert result.stdout.endswith("2000000\n")
    assert len(result.stdout) < 600_000


@pytest.mark.parametrize(
    "mark",
    ["9" * 5000 + " 0 0 0", "-1 0 0 0", "NaN 1 1 1", "1 2", "[[[[ 1 1 1", ""],
    ids=["digits", "negative", "not a number", "fields missing", "deep", "empty"],
)
async def test_a_forged_mark_costs_no_result(box: E2BBox, mark: str) -> None:
    """A command reads the nonce of its relay, and prints a mark of its own: exit code and output stand."""
    forged = (
        "nonce=$(tr '\\0' '\\n' < /proc/$PPID/cmdline | grep -xE '[0-9a-f]{16}' | head -1); "
        f"printf 'head\\x1e%s %s\\x1etail\\n' \"$nonce\" '{mark}'; seq 20000; exit 3"
    )
    result = await box.run_command(forged, timeout_s=60)
    assert result.exit_code == 3
    assert "head" in result.stdout
    assert result.stdout.endswith("20000\n")


@pytest.mark.parametrize(
    "note",
    [
        '{"started": 1e999, "exit_code": 0}',
        '{"started": NaN, "ended": "later", "exit_code": "0"}',
        '{"exit_code": ' + "9" * 5000 + "}",
        '{"exit_code": -7, "watcher": 99999999999999}',
        "[]",
        "[" * 9000,
        "",
        '{"stopped": 1, "exit_code": true}',
    ],
    ids=range(8),
)
async def test_a_forged_note_of_a_command_in_the_background_is_an_unknown_outcome(
    box: E2BBox, note: str
) -> None:
    """The command itself can write it: what is odd in it is not known, and its output is still told."""
    command_id = await box.start_command("echo told")
    while (await box.poll_command(command_id, wait_s=10)).running:
        pass
    base = f"/tmp/agent-output/{command_id}"
    await box.write_files({f"{base}.json": note.encode(), f"{base}.stdout.at": b"-9" * 5000})
    result = await box.poll_command(command_id)
    assert (result.exit_code, result.running, result.stdout) == (None, False, "told\n")


def _told(text: str) -> tuple[int, int]:
    """Return how many bytes of a message's output are shown, and how many it says are left out."""
    shown = sum(map(len, re.findall("[xy]{9,}", text)))
    return shown, sum(map(int, re.findall(r"\n… (\d+) bytes left out …\n", text)))


PRINTED = "import sys; sys.stdout.write('x' * 2_500_000 + 'y' * 2_500_000)"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("run_python", {"code": f"{PRINTED}\nraise ValueError('why')"}),
        ("run_python", {"code": "'x' * 2_500_000 + 'y' * 2_500_000 #"}),
        ("run_python", {"code": "raise ValueError('x' * 2_500_000 + 'y' * 2_500_000)"}),
        ("run_python", {"code": f"{PRINTED}\nwhile True: pass", "timeout_s": 4}),
        ("run_command", {"command": f'python3 -c "{PRINTED}"; exit 1'}),
        ("run_command", {"command": f'python3 -c "{PRINTED}"; exec sleep 60', "timeout_s": 4}),
    ],
    ids=["output, then an error", "result", "error", "cell timed out", "command", "command timed out"],
)
async def test_what_is_left_out_is_counted_of_the_whole(
    call_tool: CallTool, tool: str, given: dict[str, Any]
) -> None:
    """Of five megabytes, however often they were cut on their way, and however the call ended."""
    said = (await call_tool(tool, **given)).text
    shown, left_out = _told(said)
    # An error tells its value twice: by itself, and in the last line of its traceback.
    whole = 10_000_000 if "raise ValueError('x'" in given.get("code", "") else 5_000_000
    assert abs(shown + left_out - whole) < (600 if whole > 5_000_000 else 3), said[:200]


async def test_what_is_left_out_of_a_poll_is_counted_of_all_that_is_new(call_tool: CallTool) -> None:
    """Since the last time, in a command in the background."""
    started = (await call_tool("start_command", command=f'python3 -c "{PRINTED}"')).text
    said = (await call_tool("poll_command", command_id=started.rpartition(" ")[2], wait_s=20)).text
    assert sum(_told(said)) == 5_000_000
