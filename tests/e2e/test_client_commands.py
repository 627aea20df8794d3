"""The commands of `sandbox-agent` against a real server, piped and on a terminal."""

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from e2b_code_interpreter import AsyncSandbox
from langgraph_sdk.client import LangGraphClient

import agent.scripted
from agent.sandbox.owners import APP
from support.e2b_process import E2BLocal
from support.langgraph_dev import DevServer
from support.tcp_proxy import TcpProxy
from support.terminal import Terminal

PROGRAM = str(Path(sys.executable).parent / "sandbox-agent")
SHOP = Path(agent.scripted.__file__).parent / "broken_shop"


# Its first save is no plan, its second a plan for a protected file, its third a good one.
EDITOR = """#!/bin/sh
count=$(cat "$0.count" 2>/dev/null || echo 0)
echo $((count + 1)) > "$0.count"
case $count in
    0) echo "summary: nothing" > "$1" ;;
    1) printf 'summary: x\\nsteps:\\n- {file: tests/test_pricing.py, change: x, reason: y}\\n' > "$1" ;;
    *) printf 'summary: half\\nsteps:\\n- file: shop/pricing.py\\n' > "$1"
       printf '  change: Begin a tier at its own number.\\n  reason: the boundary is left out\\n' >> "$1" ;;
esac
touch -d "+2 seconds" "$1"
"""


@pytest.fixture
def env(server: DevServer, tmp_path: Path) -> dict[str, str]:
    """An environment in which the commands find the server, and nothing else."""
    home = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PATH": os.environ["PATH"]}
    return {**home, "LANGGRAPH_URL": server.url, "GIT_CONFIG_NOSYSTEM": "1"}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A committed copy of the broken shop."""
    folder = tmp_path / "shop"
    shutil.copytree(SHOP, folder, ignore=shutil.ignore_patterns("__pycache__"))
    commit(folder)
    return folder


def commit(folder: Path) -> None:
    """Make a folder the root of a repository with all that is in it."""
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    commit_all(folder)


def commit_all(folder: Path) -> None:
    """Commit what is in a repository."""
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    for command in (["add", "-A"], [*identity, "commit", "-qm", "More"]):
        subprocess.run(["git", *command], cwd=folder, check=True)


def run(env: dict[str, str], *arguments: str, input: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command without a terminal."""
    return subprocess.run(
        [PROGRAM, *arguments], env=env, input=input, capture_output=True, text=True, timeout=120, check=False
    )


def thread_of(shown: str) -> str:
    """Return the thread's id from what `repair` shows."""
    return shown.partition("thread ")[2].split()[0]


def pricing(shop: Path) -> str:
    """Return the text of the file that the first step changes."""
    return (shop / "shop/pricing.py").read_text()


def test_repair_left_at_the_plan_is_finished_by_another_process(env: dict[str, str], shop: Path) -> None:
    """Without a terminal nothing is approved; a later resume goes on, and its diff applies."""
    left = run(env, "repair", str(shop))
    assert left.returncode == 1, left.stdout + left.stderr
    thread = thread_of(left.stdout)
    assert f"Waits for an answer: sandbox-agent resume {thread}" in left.stdout
    assert "quantity > pieces" in pricing(shop)

    waiting = run(env, "threads", "--waiting")
    assert any(thread in line and "approval of execute_plan" in line for line in waiting.stdout.splitlines())
    assert "Let a discount tier begin" in run(env, "show", thread).stdout
    assert run(env, "resume", thread).returncode == 1

    finished = run(env, "resume", thread, "--yes")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "✓ 14 passed" in finished.stdout
    refused = run(env, "chat", "hello", "--thread", thread)
    assert refused.returncode == 2
    assert "belongs to the graph plan_execute" in refused.stdout
    late = run(env, "resume", thread, "--reject", "too late")
    assert late.returncode == 2
    assert f"Nothing waits for an answer on thread {thread}" in late.stdout
    diff = run(env, "show", thread, "--diff").stdout
    subprocess.run(["git", "apply", "--check", "-"], cwd=shop, input=diff, text=True, check=True)
    assert thread not in run(env, "threads", "--waiting").stdout
    assert run(env, "cancel", thread).stdout == "No run works on this thread.\n"


async def test_repair_loses_and_repeats_nothing_whatever_breaks(
    env: dict[str, str], shop: Path, server: DevServer
) -> None:
    """Left at its question, gone on with by another process after a restart of the server, cut off twice."""
    with Terminal([PROGRAM, "repair", "."], env=env, cwd=shop) as terminal:
        await asyncio.to_thread(terminal.expect, "Carry out this plan?")
        terminal.type("\x03")
        assert await asyncio.to_thread(terminal.wait) == 130
        assert "The question stays open: sandbox-agent resume " in terminal.text
        thread = thread_of(terminal.text)
    await server.restart()
    async with TcpProxy(server.url) as proxy:
        command = [PROGRAM, "resume", thread, "--server", proxy.url]
        with Terminal(command, env=env, cwd=shop) as terminal:
            await asyncio.to_thread(terminal.expect, "Carry out this plan?")
            terminal.type("y\n")
            await asyncio.to_thread(terminal.expect, "1 of 2")
            proxy.cut()
            await asyncio.to_thread(terminal.expect, "write_file shop/pricing.py")
            proxy.refusing = True
            proxy.cut()
            await asyncio.to_thread(terminal.expect, f"No connection to {proxy.url}")
            proxy.refusing = False
            await asyncio.to_thread(terminal.expect, "The connection is back.")
            await asyncio.to_thread(terminal.expect, "✓ 14 passed")
            assert await asyncio.to_thread(terminal.wait) == 0
    for once in (
        "  1 of 2  ",
        "  2 of 2  ",
        "write_file shop/pricing.py",
        "write_file shop/basket.py",
        "Wrote 751 bytes",
        "  6 passed in ",
    ):
        assert terminal.text.count(once) == 1, once


def test_repair_on_a_terminal_that_is_no_utf8(env: dict[str, str], shop: Path) -> None:
    """What its encoding has not becomes `?`; the files are changed as they should be."""
    env = env | {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    (shop / "b\xfccher.txt").write_text("\u2717\n")
    commit_all(shop)
    done = run(env, "repair", str(shop), "--yes", "--apply")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "quantity >= pieces" in (shop / "shop" / "pricing.py").read_text()
    assert done.stdout.isascii()


def test_repair_json_writes_objects_alone(env: dict[str, str], shop: Path) -> None:
    """Each line is an object with its kind; words for people are on the standard error.

    The folder is a part of a repository, whose other files are not sent and not changed.
    """
    shutil.rmtree(shop / ".git")
    commit(shop.parent)
    done = run(env, "repair", str(shop), "--yes", "--json", "--apply")
    assert done.returncode == 0, done.stderr
    events: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = {event["event"] for event in events}
    assert {"started", "progress", "tests", "tool_event", "interrupted", "finished"} <= kinds
    assert events[-1]["values"]["status"] == "passed"
    assert "Changed shop/basket.py, shop/pricing.py." in done.stderr
    assert "quantity >= pieces" in pricing(shop)


def test_repair_on_a_terminal_asks_for_the_plan_and_for_the_files(env: dict[str, str], shop: Path) -> None:
    """Two questions, two answers, and the files are changed only then."""
    with Terminal([PROGRAM, "repair", ".", "--apply"], env=env, cwd=shop) as terminal:
        terminal.expect("Carry out this plan?")
        terminal.type("y\n")
        terminal.expect("Change shop/basket.py, shop/pricing.py in .?")
        assert "quantity > pieces" in pricing(shop)
        terminal.type("y\n")
        assert terminal.wait() == 0
    assert "quantity >= pieces" in pricing(shop)


def test_plan_is_edited_in_an_editor_and_carried_out_as_it_was_saved(
    env: dict[str, str], shop: Path, tmp_path: Path
) -> None:
    """What cannot be used, here or at the graph, is asked again; half a fix is red."""
    editor = tmp_path / "editor"
    editor.write_text(EDITOR)
    editor.chmod(0o755)
    with Terminal(
        [PROGRAM, "repair", ".", "--tries", "1"], env=env | {"EDITOR": str(editor)}, cwd=shop
    ) as terminal:
        terminal.expect("Carry out this plan? [y]es, [e]dit, [n]o:")
        terminal.type("e\n")
        terminal.expect("This cannot be used: it needs `summary` and at least one step")
        terminal.expect("Edit it again?")
        terminal.type("y\n")
        terminal.expect("The edited plan cannot be carried out")
        terminal.expect("Carry out this plan?")
        terminal.type("e\n")
        terminal.expect("1 of 1  Begin a tier at its own number")
        terminal.expect("Result")
        assert terminal.wait() == 1
        assert "write_file shop/basket.py" not in terminal.text
        thread = thread_of(terminal.text)
    state = json.loads(run(env, "show", thread, "--json").stdout)
    assert state["values"]["edited"] is True
    assert [step["change"] for step in state["values"]["plan"]["steps"]] == [
        "Begin a tier at its own number."
    ]
    assert state["pending"] == []


def test_rejected_plan_is_made_anew_with_words_and_ends_the_run_without(
    env: dict[str, str], shop: Path
) -> None:
    """Each plan is a question of its own, and the only one open; nothing is carried out, exit code 1.

    Who answers a plan that another has turned down is told so.
    """
    left = run(env, "repair", str(shop), "--json")
    assert left.returncode == 1, left.stderr
    thread = json.loads(left.stdout.splitlines()[0])["thread_id"]
    first = json.loads(left.stdout.splitlines()[-1])["interrupts"]
    again = run(env, "resume", thread, "--reject", "Smaller steps", "--json")
    assert again.returncode == 1, again.stderr
    second = json.loads(again.stdout.splitlines()[-1])["interrupts"]
    assert json.loads(run(env, "show", thread, "--json").stdout)["pending"] == second
    assert [len(first), len(second), second[0]["value"]["rejections"]] == [1, 1, 1]
    assert first[0]["id"] != second[0]["id"]
    with Terminal([PROGRAM, "resume", thread], env=env, cwd=shop) as terminal:
        terminal.expect("Carry out this plan?")
        assert run(env, "resume", thread, "--reject", "Smaller still").returncode == 1
        terminal.type("y\n")
        terminal.expect("The question was answered elsewhere meanwhile; your answer was not sent")
        terminal.expect("Another question waits.")
        terminal.expect(f"`sandbox-agent resume {thread}` shows it.")
        assert terminal.wait() == 3
    with Terminal([PROGRAM, "resume", thread], env=env, cwd=shop) as terminal:
        terminal.expect("Carry out this plan?")
        terminal.type("n\n")
        terminal.expect("Why not?")
        terminal.type("\n")
        terminal.expect("rejected")
        assert terminal.wait() == 1
        assert "write_file" not in terminal.text


def test_ctrl_c_once_asks_and_detaching_loses_nothing(env: dict[str, str], shop: Path) -> None:
    """Enter stays and goes on watching; detaching leaves the run to a later resume."""
    with Terminal([PROGRAM, "repair", "."], env=env, cwd=shop) as terminal:
        terminal.expect("A new sandbox was made")
        terminal.type("\x03")
        terminal.expect("Stop watching?")
        terminal.type("\n")
        terminal.expect("Carry out this plan?")
        terminal.type("y\n")
        terminal.expect("1 of 2")
        terminal.type("\x03")
        terminal.expect("Stop watching?")
        terminal.type("d\n")
        terminal.expect("The run goes on: sandbox-agent resume ")
        assert terminal.wait() == 130
        thread = thread_of(terminal.text)
    later = run(env, "resume", thread)
    assert later.returncode == 0, later.stdout + later.stderr
    assert "✓ 14 passed" in later.stdout


def test_ctrl_c_twice_leaves_at_once(env: dict[str, str], shop: Path) -> None:
    """The second one asks nothing; how to come back is said."""
    with Terminal([PROGRAM, "repair", "."], env=env, cwd=shop) as terminal:
        terminal.expect("A new sandbox was made")
        terminal.type("\x03")
        terminal.expect("Stop watching?")
        terminal.type("\x03")
        terminal.expect("sandbox-agent resume ")
        assert terminal.wait(timeout_s=5) == 130
        thread = thread_of(terminal.text)
    run(env, "cancel", thread)


def test_ctrl_c_then_cancel_stops_the_run(env: dict[str, str], shop: Path) -> None:
    """Nothing works on the thread afterwards."""
    with Terminal([PROGRAM, "repair", "."], env=env, cwd=shop) as terminal:
        terminal.expect("A new sandbox was made")
        terminal.type("\x03")
        terminal.expect("Stop watching?")
        terminal.type("c\n")
        terminal.expect("The run is cancelled.")
        assert terminal.wait() == 130
        thread = thread_of(terminal.text)
    assert run(env, "cancel", thread).stdout == "No run works on this thread.\n"


def test_chat_answers_one_message_and_saves_its_chart(env: dict[str, str], tmp_path: Path) -> None:
    """The code, and the chart as a file."""
    done = run(env, "chat", "Draw a bar chart of 3, 1 and 2", "--charts", str(tmp_path / "charts"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "plt.bar(" in done.stdout
    assert (tmp_path / "charts" / "chart-1.png").read_bytes().startswith(b"\x89PNG")


def test_chat_uploads_a_file_that_later_turns_find(env: dict[str, str], tmp_path: Path) -> None:
    """It lies in the sandbox's home, is told to the agent, and stays for the thread's next turn."""
    (tmp_path / "n\u00fambers.csv").write_text("3\n1\n2\n")
    (tmp_path / "folder").mkdir()
    for wrong in (tmp_path / "folder", tmp_path / "nowhere"):
        assert run(env, "chat", "hello", "--upload", str(wrong)).returncode == 2
    said = "Run `sort n\u00fambers.csv`"
    first = run(env, "chat", said, "--upload", str(tmp_path / "n\u00fambers.csv"), "--json")
    assert first.returncode == 0, first.stderr
    assert "6 bytes, /home/user/n\u00fambers.csv in the sandbox" in first.stderr
    events = [json.loads(line) for line in first.stdout.splitlines()]
    results = [event["text"] for event in events if event.get("what") == "end"]
    assert "<stdout>\n1\n2\n3\n</stdout>" in results[0]
    thread = events[0]["thread_id"]
    second = run(env, "chat", "Run `wc -l *.csv`", "--thread", thread)
    assert "3 n\u00fambers.csv" in second.stdout, second.stdout + second.stderr
    assert "Uploaded into the sandbox: /home/user/n\u00fambers.csv" in run(env, "show", thread).stdout


def test_chat_reads_a_pipe_and_goes_on_with_a_thread(env: dict[str, str]) -> None:
    """A message on the standard input is one turn; --thread continues the conversation."""
    first = run(env, "chat", "--json", input="What is 17 * 23?\n")
    assert first.returncode == 0, first.stderr
    thread = json.loads(first.stdout.splitlines()[0])["thread_id"]
    second = run(env, "chat", "How many r's are in 'strawberry'?", "--thread", thread)
    assert second.returncode == 0, second.stdout + second.stderr
    shown = run(env, "show", thread).stdout
    assert "you> What is 17 * 23?" in shown
    assert "you> How many r's" in shown


def test_chat_on_a_terminal_talks_until_the_end_of_input(env: dict[str, str], tmp_path: Path) -> None:
    """Several turns; Ctrl-D leaves with exit code 0."""
    with Terminal([PROGRAM, "chat"], env=env, cwd=tmp_path) as terminal:
        terminal.expect("you> ")
        terminal.type("What is 6 * 7?\n")
        terminal.expect("42")
        terminal.expect("you> ")
        terminal.type("\x04")
        assert terminal.wait() == 0


async def test_one_thread_that_cannot_be_read_is_in_nobodys_way(
    env: dict[str, str], client: LangGraphClient, sandboxes: E2BLocal
) -> None:
    """Its graph is served no more; lists of threads and of sandboxes name it, and go where they are sent."""
    thread = await client.threads.create(graph_id="plan_execute")
    made = await client.runs.create(thread["thread_id"], "plan_execute", input={})
    with contextlib.suppress(Exception):  # the SDK may raise what the run failed with
        await client.runs.join(thread["thread_id"], made["run_id"])
    await client.threads.update(thread["thread_id"], metadata={"graph_id": "retired"})
    for options in ([], ["--waiting"]):
        listed = await asyncio.to_thread(run, env, "threads", *options)
        assert listed.returncode == 0, listed.stdout + listed.stderr
        (line,) = [line for line in listed.stdout.splitlines() if line.startswith(thread["thread_id"])]
        assert "cannot be read: " in line
    named = {
        "app": APP,
        "deployment": "e2e",
        "thread": thread["thread_id"],
        "keep": "thread",
        "home": "server",
    }
    left = await AsyncSandbox.create(metadata=named, **sandboxes.options)
    await left.pause()
    found = await asyncio.to_thread(
        run, env | sandboxes.env | {"DEPLOYMENT": "e2e"}, "sandboxes", "list", "--trust-server"
    )
    await left.kill()
    assert found.returncode == 0, found.stdout + found.stderr
    (line,) = [line for line in found.stdout.splitlines() if line.startswith(left.sandbox_id)]
    assert "its thread cannot be read" in line
    shell = f'"{PROGRAM}" threads --json'
    for pipe, code, said in (
        ("| head -1", 0, ""),
        ("> /dev/full", 3, "The output cannot be written: No space"),
    ):
        done = await asyncio.to_thread(
            subprocess.run,
            ["sh", "-c", f"{shell} {pipe}"],
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr[: len(said) or None]) == (code, said)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["repair", "/nowhere/at/all"], 2, "is no folder"),
        (["repair"], 2, "Missing argument"),
        (["repair", ""], 2, "an empty path names nothing"),
        (["chat", "hello", "--header", "nonsense"], 2, "a header looks like"),
        (["threads", "--server", "nonsense"], 2, "is no address"),
        (["resume", "nope"], 2, "is no id of a thread"),
        (["show", "00000000-0000-4000-8000-000000000000"], 3, "not found"),
        (["threads", "--server", "http://127.0.0.1:1"], 3, "sandbox-agent serve"),
        (["doctor"], 0, "graphs agent, plan_execute"),
        (["--help"], 0, "Exit codes"),
    ],
)
def test_exit_codes(env: dict[str, str], arguments: list[str], code: int, text: str) -> None:
    """Wrong usage is 2, a failing server 3; the reason is on the screen."""
    done = run(env, *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    assert text in " ".join((done.stdout + done.stderr).split())
