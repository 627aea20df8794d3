"""Child processes are started, waited for and always ended, with all that they started."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent.cli.processes import ChildProcess, LocalServerError

READY = "import time; print('ready', flush=True); time.sleep(60)"
STUBBORN = (
    "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
    "print(child.pid, flush=True); time.sleep(60)"
)


SAYS_WHY = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(print("asked", flush=True)))
print("ready", flush=True)
time.sleep(60)
"""
STARTER = """
import sys, time
from pathlib import Path
from agent.cli.processes import ChildProcess

folder = Path(sys.argv[1])
process = ChildProcess("it", [sys.executable, "-c", sys.argv[2]], cwd=folder, log=folder / "log")
process.start()
print(process.pid, flush=True)
time.sleep(60)
"""


def child(folder: Path, program: str, **env: str) -> ChildProcess:
    """Return a process that runs a Python program."""
    return ChildProcess("the child", [sys.executable, "-c", program], cwd=folder, log=folder / "log", env=env)


def said(process: ChildProcess) -> str | None:
    """Return what the process has printed, if anything."""
    return process.output() or None


def alive(pid: int) -> bool:
    """Whether a process runs; one that waits to be collected does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def test_wait_ready_returns_what_the_sign_of_life_says(tmp_path: Path) -> None:
    """The process is left running, and stop ends it."""
    process = child(tmp_path, READY)
    process.start()
    assert process.wait_ready(lambda: said(process), deadline_s=20) == "ready\n"
    pid = process.pid
    assert pid is not None
    assert process.is_running()
    process.stop()
    assert not alive(pid)
    assert process.pid is None
    assert not process.is_running()


def test_start_that_ends_shows_the_end_of_the_log(tmp_path: Path) -> None:
    """The reason that the program printed is in the error."""
    process = child(tmp_path, "raise SystemExit('no such setting')")
    process.start()
    with pytest.raises(
        LocalServerError, match=r"the child ended before it was ready \(exit code 1\)\.\n.*\n  no such"
    ):
        process.wait_ready(lambda: None, deadline_s=20)
    process.stop()


def test_start_that_takes_too_long_is_an_error(tmp_path: Path) -> None:
    """The deadline is kept; stopping is still the caller's to do."""
    process = child(tmp_path, READY)
    process.start()
    try:
        with pytest.raises(LocalServerError, match=r"not ready within 0.1 s"):
            process.wait_ready(lambda: None, deadline_s=0.1)
        assert process.is_running()
    finally:
        process.stop()


def test_unknown_program_is_an_error(tmp_path: Path) -> None:
    """It names the program."""
    process = ChildProcess("it", [str(tmp_path / "nowhere")], cwd=tmp_path, log=tmp_path / "log")
    with pytest.raises(LocalServerError, match=r"it cannot be started: .*nowhere"):
        process.start()
    process.stop()


def test_stop_kills_a_process_that_does_not_listen_and_its_children(tmp_path: Path) -> None:
    """After the grace the whole group is killed."""
    process = child(tmp_path, STUBBORN)
    process.start()
    grandchild = int(process.wait_ready(lambda: said(process), deadline_s=20))
    parent = process.pid
    assert parent is not None
    process.stop(grace_s=0.2)
    assert not alive(parent)
    assert _ends(grandchild)


def test_interrupt_while_stopping_kills_at_once(tmp_path: Path) -> None:
    """A second Ctrl-C ends the grace, not the killing."""
    process = child(tmp_path, STUBBORN)
    process.start()
    process.wait_ready(lambda: said(process), deadline_s=20)
    pid = process.pid
    assert pid is not None
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            process.stop(grace_s=30)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not alive(pid)


def test_child_that_was_killed_says_by_which_signal(tmp_path: Path) -> None:
    """Long lines of its log are cut; they may hold a whole document."""
    process = child(tmp_path, f"print('x' * 1000, flush=True); {READY}")
    process.start()
    process.wait_ready(lambda: "ready" in process.output() or None, deadline_s=20)
    assert process.ending() == ""
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(LocalServerError, match=r"ended before it was ready \(SIGKILL\)") as error:
        process.wait_ready(lambda: None, deadline_s=20)
    process.stop()
    assert max(len(line) for line in str(error.value).splitlines()) < 400


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's death signal is Linux's")
def test_child_of_a_killed_process_ends_by_itself(tmp_path: Path) -> None:
    """SIGKILL leaves the starter no moment to stop anything; the child is asked with SIGTERM all the same."""
    command = [sys.executable, "-c", STARTER, str(tmp_path), SAYS_WHY]
    starter = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    give_up = time.monotonic() + 20
    while "ready\n" not in (tmp_path / "log").read_text() and time.monotonic() < give_up:
        os.sched_yield()
    starter.kill()
    starter.communicate()
    assert _ends(pid)
    assert (tmp_path / "log").read_text() == "ready\nasked\n"


def test_log_is_private_and_kept_over_restarts(tmp_path: Path) -> None:
    """A server may print its key; a restart appends."""
    process = child(tmp_path, "import os; print(os.environ['WORD'])", WORD="hello")
    for _ in range(2):
        process.start()
        with pytest.raises(LocalServerError):
            process.wait_ready(lambda: None, deadline_s=20)
        process.stop()
    assert process.output() == "hello\nhello\n"
    assert (tmp_path / "log").stat().st_mode & 0o077 == 0


def _ends(pid: int) -> bool:
    # Killed already, but a process without a parent is collected by init in its own time.
    give_up = time.monotonic() + 5
    while alive(pid) and time.monotonic() < give_up:
        os.sched_yield()
    return not alive(pid)


def test_output_without_a_log_is_relayed_and_made_visible(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server's log repeats what models say; its colours stay, and end with their line."""
    program = r"print('\x1b[32mok\x1b[0m \x1b]52;c;x\x07 \x1b[2K\x1b[8mhidden\x1b[30m'); print('plain')"
    process = ChildProcess("it", [sys.executable, "-c", program], cwd=tmp_path, log=None)
    process.start()
    while process.is_running():
        time.sleep(0.01)
    process.stop()
    assert capsys.readouterr().out == ("\x1b[32mok\x1b[0m ␛]52;c;x␇ ␛[2K␛[8mhidden␛[30m\x1b[0m\nplain\n")
