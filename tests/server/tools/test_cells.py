"""Cells behave as in any notebook, and end when they must."""

import asyncio
import json
import secrets

import pytest
from e2b.sandbox_async.commands.command import Commands
from e2b_code_interpreter import code_interpreter_async

from agent.errors import SandboxGoneError, SandboxTemplateError
from agent.sandbox.e2b import E2BProvider
from agent.sandbox.e2b.box import E2BBox
from agent.sandbox.provider import SandboxSpec
from agent.tools.results import code_artifact, code_text
from support.e2b_process import E2BLocal


@pytest.mark.parametrize(
    ("code", "printed", "value"),
    [
        ("x = 20\nx + 1", "", "21"),
        ("import asyncio\nawait asyncio.sleep(0)\nprint('a')\n'b'", "a\n", "b"),
        ("%%bash\necho from bash", "from bash\n", None),
        ("!echo shell", "shell\n", None),
        ("import os; os.system('echo child')", "child\n", "0"),
        ("In[-1]", "", "In[-1]"),
        ("for n in range(3):\n    print(n)", "0\n1\n2\n", None),
        ("async def f():\n    return 5\nf.__name__", "", "f"),
    ],
)
async def test_a_cell_works_as_in_a_notebook(box: E2BBox, code: str, printed: str, value: str | None) -> None:
    """Magics, shell lines, top-level await and the last expression are IPython's own."""
    result = await box.run_code(code, timeout_s=60)
    assert result.error is None
    assert (result.stdout, result.stderr) == (printed, "")
    assert [rich.data["text/plain"] for rich in result.results] == ([value] if value is not None else [])


BACKGROUND = "echo now; (sleep 1; echo later; echo {path} done > {path}; sleep 30) & "


@pytest.mark.parametrize(
    "code",
    [
        "%%bash\n" + BACKGROUND,
        "%%sh\n" + BACKGROUND,
        "%%script bash\n" + BACKGROUND,
        "!" + BACKGROUND,
        f"import os; os.system({BACKGROUND!r});",
        "import subprocess; print('now'); subprocess.Popen('sleep 30; echo > {path}', shell=True);",
    ],
)
async def test_what_runs_on_in_the_background_does_not_hold_a_cell(box: E2BBox, code: str) -> None:
    """Its result comes at once, and what runs on is not ended by a closed pipe."""
    path = f"/tmp/{secrets.token_hex(4)}"
    result = await box.run_code(code.replace("{path}", path), timeout_s=25)
    assert not result.timed_out
    assert (result.error, result.stdout) == (None, "now\n")
    if "later" in code:
        there = f"import os, time\nwhile not os.path.exists({path!r}): time.sleep(0.1)"
        assert not (await box.run_code(there, timeout_s=20)).timed_out


async def test_a_thread_prints_for_the_cell_that_runs(box: E2BBox) -> None:
    """Whichever cell has started it: what it prints meanwhile is not lost."""
    start = """
import threading, time
go, done = threading.Event(), threading.Event()
def work():
    go.wait()
    print("from the thread")
    done.set()
threading.Thread(target=work).start()
"""
    assert (await box.run_code(start, timeout_s=60)).stdout == ""
    assert (await box.run_code("go.set(); done.wait();", timeout_s=60)).stdout == "from the thread\n"


@pytest.mark.parametrize(
    ("code", "printed", "error"),
    [
        ("%%bash\necho out; echo err >&2; exit 3", "out\n", "CalledProcessError"),
        ("%%bash --no-raise-error\necho out; echo err >&2; exit 3", "out\n", ""),
        ("%%bash --out kept\necho out; echo err >&2", "", ""),
        ("%%python3\nimport sys; print('é'); print('err', file=sys.stderr)", "é\n", ""),
    ],
)
async def test_script_cells_are_ipythons_own(box: E2BBox, code: str, printed: str, error: str) -> None:
    """Their options, both streams, their input and their exit code."""
    result = await box.run_code(code, timeout_s=60)
    assert (result.stdout, result.stderr) == (printed, "err\n")
    assert (result.error.name if result.error else "") == error


SLOW_READER = """
import os, time
read = os.read
def slow(fd, size):
    time.sleep(0.5)
    return read(fd, size)
os.read = slow
os.system("echo first")
time.sleep(0.2)  # the kernel's reader has it, and is in the slow one
os.system("echo second; printf '\\036' >&2")
os.read = read
"""


async def test_what_children_print_last_belongs_to_the_cell(box: E2BBox) -> None:
    """However late the kernel's own thread reads it, whatever it is, and nothing comes with it."""
    for _ in range(2):
        result = await box.run_code(SLOW_READER, timeout_s=60)
        assert (result.stdout, result.stderr, result.error) == ("first\nsecond\n", "\x1e", None)


@pytest.mark.parametrize("target", ["'/dev/null'", "'/tmp/elsewhere'"])
async def test_a_cell_may_send_what_its_children_print_elsewhere(box: E2BBox, target: str) -> None:
    """Nothing of ours is written there, and the cell ends as ever."""
    code = f"""
import os
kept = os.dup(1)
there = os.open({target}, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
os.dup2(there, 1)
os.system("echo elsewhere")
"""
    assert (await box.run_code(code, timeout_s=60)).stdout == ""
    code = f"os.dup2(kept, 1); os.close(kept); os.close(there); open({target}).read()"
    result = await box.run_code(code, timeout_s=60)
    shown = [rich.data["text/plain"] for rich in result.results]
    assert shown == ([""] if "null" in target else ["elsewhere\\n"])


async def test_an_error_names_the_line_of_the_cell(box: E2BBox) -> None:
    """Line numbers are the model's own; nothing of what runs the cell is in the traceback."""
    result = await box.run_code("a = 1\n\ndef f():\n    return a / 0\n\nf()", timeout_s=60)
    assert result.error is not None
    assert (result.error.name, result.error.value) == ("ZeroDivisionError", "division by zero")
    assert "line 6" in result.error.traceback
    assert "line 4" in result.error.traceback
    assert "agent_cells" not in result.error.traceback
    syntax = await box.run_code("x = 1\ny = = 2", timeout_s=60)
    assert syntax.error is not None
    assert syntax.error.name == "SyntaxError"
    assert "line 2" in syntax.error.traceback


async def test_charts_and_tables_come_in_order(box: E2BBox) -> None:
    """Two figures and a table in one cell: two images and HTML, as they were displayed (A29)."""
    code = """
import matplotlib.pyplot as plt, pandas as pd
plt.plot([1, 2]); plt.show()
display(pd.DataFrame({'a': [1, 2]}))
plt.plot([2, 1]); plt.show()
"""
    result = await box.run_code(code, timeout_s=60)
    kinds = ["image/png" in rich.data or ("text/html" in rich.data and "table") for rich in result.results]
    assert kinds == [True, "table", True]


@pytest.mark.parametrize(
    "spoil",
    [
        "sys.stdout = None",
        "sys.stdout.close()",
        "sys.stdout = sys.__stdout__",
        "sys.stderr = None; sys.stdout = io.StringIO(); sys.stdout.close()",
    ],
)
async def test_a_cell_that_spoils_the_standard_streams_costs_the_next_nothing(
    box: E2BBox, spoil: str
) -> None:
    """They are put back; the kernel and its variables stay."""
    await box.run_code(f"import io, sys\nx = 6\n{spoil}", timeout_s=60)
    after = await box.run_code("print(x + 1)\nprint('e', file=sys.stderr)\nx", timeout_s=60)
    assert (after.stdout, after.stderr) == ("7\n", "e\n")
    assert after.results[0].data["text/plain"] == "6"
    assert not after.restarted


async def test_halves_of_characters_are_shown_and_hide_nothing(box: E2BBox) -> None:
    """In an error, the output and a result, as a name that is no UTF-8 has them."""
    raised = await box.run_code("raise Exception('\\ud800 x')", timeout_s=60)
    assert raised.error is not None
    assert (raised.error.name, raised.error.value) == ("Exception", "\\ud800 x")
    shown = await box.run_code("print('\\udcff')\n'\\ud800'", timeout_s=60)
    assert (shown.stdout, shown.results[0].data["text/plain"]) == ("\\udcff\n", "\\ud800")


async def test_a_sandbox_that_dies_under_a_cell_is_gone(provider: E2BProvider, sandboxes: E2BLocal) -> None:
    """The connection breaks before the service knows why: it is asked until it does."""
    handle = await provider.create(SandboxSpec("code-interpreter-v1", 3600, {}, "dies-under-a-cell"))
    cell = asyncio.create_task(E2BBox(handle).run_code("import time; time.sleep(30)", timeout_s=60))
    await asyncio.sleep(1)
    await asyncio.to_thread(sandboxes.die, handle.sandbox_id)
    with pytest.raises(SandboxGoneError):
        await cell
    assert handle.gone


async def test_a_cell_whose_end_was_interrupted_takes_nothing_of_the_next(box: E2BBox) -> None:
    """Where an interruption hits between a cell's end and its tidying up, the next one prints as ever."""
    left_behind = "import sys, threading; kept = sys.stdout.write"
    again = "threading.Timer(0.2, lambda: setattr(sys.stdout, 'write', kept)).start()"
    await box.run_code(f"{left_behind}\n{again}", timeout_s=60)
    await asyncio.sleep(0.6)
    for n in range(2):
        assert (await box.run_code(f"print({n})", timeout_s=60)).stdout == f"{n}\n"


@pytest.mark.parametrize("waits", ["", "await asyncio.sleep(0)\n"])
async def test_a_runaway_cell_is_interrupted_and_the_next_one_works(box: E2BBox, waits: str) -> None:
    """The limit is kept, variables are kept, whether or not the cell awaits something (A23)."""
    await box.run_code("import asyncio; kept = 1", timeout_s=60)
    endless = "'await'\n" if not waits else "await asyncio.sleep(60)\n"
    result = await box.run_code(f"{waits}{endless}while True: pass", timeout_s=1)
    assert result.timed_out
    assert result.duration_s < 4
    following = await box.run_code("print(kept)", timeout_s=60)
    assert (following.stdout, following.restarted) == ("1\n", False)


async def test_a_cell_that_cannot_be_interrupted_costs_the_variables_and_says_so(
    box: E2BBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel is started anew for the next cell, which is told of it (A23)."""
    monkeypatch.setattr("agent.sandbox.e2b.cells._PROBE_S", 1)
    stubborn = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
    assert (await box.run_code(stubborn, timeout_s=1)).timed_out
    following = await box.run_code("print('works')", timeout_s=60)
    assert (following.stdout, following.restarted) == ("works\n", True)
    assert not (await box.run_code("1", timeout_s=60)).restarted


async def test_a_kernel_that_died_between_cells_is_noticed(box: E2BBox) -> None:
    """The service starts another without a word; its count of cells gives it away."""
    await box.run_code("import os, threading; x = 1", timeout_s=60)
    died = await box.run_code("os._exit(1)", timeout_s=60)
    assert died.restarted
    await box.run_code("import os, threading", timeout_s=60)
    await box.run_code("threading.Timer(0.05, os._exit, [1]).start()", timeout_s=60)
    await asyncio.sleep(0.5)
    assert (await box.run_code("1", timeout_s=60)).restarted


async def test_a_kernel_that_died_between_turns_is_noticed(provider: E2BProvider, box: E2BBox) -> None:
    """Another process, which knows nothing of earlier cells, is told by the sandbox itself, and once."""
    await box.run_code("x = 1", timeout_s=60)
    await box.run_command("kill -9 $(pgrep -f '[i]pykernel_launcher'); sleep 0.5", timeout_s=30)
    later = E2BBox(await provider.connect(box.sandbox_id, 300))
    first = await later.run_code("print('x' in globals())", timeout_s=60)
    assert (first.stdout, first.results, first.restarted) == ("False\n", (), True)
    assert not (await later.run_code("1", timeout_s=60)).restarted


@pytest.mark.parametrize(
    "code",
    ["input('well? ')", "!read x && echo got $x", "import subprocess; subprocess.run(['cat'], check=True)"],
)
async def test_code_that_asks_for_input_does_not_wait(box: E2BBox, code: str) -> None:
    """In the kernel nothing can be typed: a question fails, and a program reads the end (A35)."""
    async with asyncio.timeout(5):
        result = await box.run_code(code, timeout_s=60)
    assert not result.timed_out
    if "input" in code:
        assert result.error is not None
        assert result.error.name == "StdinNotImplementedError"


async def test_a_command_that_asks_for_input_does_not_wait(box: E2BBox) -> None:
    """Its standard input is at its end (A35)."""
    async with asyncio.timeout(5):
        result = await box.run_command("python3 -c 'input()'", timeout_s=60)
    assert result.exit_code == 1
    assert "EOFError" in result.stderr


async def test_an_exception_that_quotes_its_data_is_cut(box: E2BBox) -> None:
    """What an error says is bounded where it is raised, as output is."""
    result = await box.run_code("raise ValueError('x' * 5_000_000)", timeout_s=60)
    assert result.error is not None
    assert result.error.name == "ValueError"
    assert result.error.value.startswith("xxx")
    assert len(result.error.value) + len(result.error.traceback) < 40_000


async def test_limits_are_ours_and_not_the_sdks(box: E2BBox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit beyond the SDK's own default of 60 and 300 s holds: neither default is ever used (A22)."""
    defaults = Commands.run.__defaults__
    assert defaults is not None
    monkeypatch.setattr(Commands.run, "__defaults__", tuple(0.3 if each == 60 else each for each in defaults))
    monkeypatch.setattr(code_interpreter_async, "DEFAULT_TIMEOUT", 0.3)
    assert (await box.run_command("sleep 0.6; echo ok", timeout_s=300)).stdout == "ok\n"
    cell = await box.run_code("import time; time.sleep(0.6); print('ok')", timeout_s=300)
    assert cell.stdout == "ok\n"


async def test_a_template_without_the_interpreter_is_named(box: E2BBox, sandboxes: E2BLocal) -> None:
    """A closed port 49999 says which template lacks which command, and not that code was slow (A28)."""
    message = "The sandbox is running but port is not open"
    sandboxes.inject("status", "49999:/execute", status=502, message=message)
    with pytest.raises(SandboxTemplateError, match=r"'code-interpreter-v1'.*start command is missing"):
        await box.run_code("1", timeout_s=60)


async def test_rich_results_of_any_size_come_as_they_are(box: E2BBox) -> None:
    """A figure of 50,000 points as JSON; a page that is too long to pass on is named, with its file."""
    code = """
figure = {"data": [{"x": list(range(50_000)), "y": list(range(50_000))}], "layout": {}}
display({"application/vnd.plotly.v1+json": figure, "text/html": "<div>chart</div>"}, raw=True)
display({"text/plain": "Map", "text/html": "<b>" * 3_000_000}, raw=True)
"""
    result = await box.run_code(code, timeout_s=60)
    assert result.error is None
    figure = json.loads(result.results[0].data["application/vnd.plotly.v1+json"])
    assert figure["data"][0]["x"][-1] == 49_999
    assert result.results[0].data["text/html"] == "<div>chart</div>"
    said = code_text(result, 60, 16_384)
    assert "[text/html, 9000000 bytes: too long to pass on; the whole in /tmp/agent-output/" in said
    assert code_artifact(result)["results"][1] == {"text/plain": "Map"}
