"""The server as a process: its start, its refusals, its end, and what a killed one leaves."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from e2b import RateLimitException
from e2b_code_interpreter import Sandbox

from e2b_local.inbox.family import descendants
from support.e2b_process import E2BLocal, isolation_arguments, start_e2b_local


@pytest.fixture(params=["isolated", "plain"])
def options(request: pytest.FixtureRequest) -> list[str]:
    """Options of a server with and without isolation."""
    if request.param == "plain":
        return ["--no-isolation", "--pool", "0"]
    request.getfixturevalue("isolated")
    return ["--pool", "0"]


@pytest.fixture
def starts(tmp_path: pathlib.Path) -> Iterator[list[E2BLocal]]:
    """Servers to end after the test."""
    started: list[E2BLocal] = []
    yield started
    for server in started:
        with contextlib.suppress(Exception):
            server.stop()


def _busy(server: E2BLocal) -> set[tuple[int, str]]:
    """Give a server work of every kind; return all its processes."""
    sandbox = Sandbox.create(**server.options)
    sandbox.run_code("import subprocess; subprocess.Popen(['sleep', '1000'], start_new_session=True)")
    sandbox.commands.run("setsid sleep 1000 & sleep 1000", background=True)
    paused = Sandbox.create(**server.options)
    paused.commands.run("sleep 1000", background=True)
    paused.pause()
    processes = {(pid, _started(pid)) for pid in descendants(server.pid)}
    assert len(processes) >= 8
    return processes


def _started(pid: int) -> str:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def _alive(processes: set[tuple[int, str]]) -> set[int]:
    return {pid for pid, started in processes if started and _started(pid) == started}


def test_sigterm_ends_everything_within_five_seconds(starts: list[E2BLocal], options: list[str]) -> None:
    """With cells, commands and a paused sandbox at work, it exits with 0 and nothing of it is left."""
    server = start_e2b_local(*options)
    starts.append(server)
    processes = _busy(server)
    begun = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - begun < 5
    assert _alive(processes) == set()


def test_sigkill_leaves_no_process_and_the_next_start_clears_up(
    starts: list[E2BLocal], tmp_path: pathlib.Path, options: list[str]
) -> None:
    """Every process of its sandboxes ends, paused ones too; its folder is removed by the next server."""
    short = pathlib.Path(f"/tmp/e2b-test-{os.getpid()}")  # Unix sockets in it must have short names
    short.mkdir()
    try:
        server = start_e2b_local(*options, env={"TMPDIR": str(short)})
        starts.append(server)
        processes = _busy(server)
        server.kill()
        deadline = time.monotonic() + 30
        while _alive(processes) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert _alive(processes) == set()
        left = [path for path in short.iterdir() if path.is_dir()]
        assert len(left) == 1
        mounts = pathlib.Path("/proc/self/mounts").read_text()
        assert str(left[0]) not in mounts
        following = start_e2b_local(*options, env={"TMPDIR": str(short)})
        starts.append(following)
        assert not left[0].exists()
        assert list(pathlib.Path("/sys/fs/cgroup").rglob(f"{left[0].name}-*")) == []
        assert following.stop() == 0
        assert list(short.glob("e2b-local-*")) == []
    finally:
        subprocess.run(["rm", "-rf", str(short)], check=True)


@pytest.mark.usefixtures("isolated")
def test_a_warm_sandbox_is_as_a_new_one(starts: list[E2BLocal]) -> None:
    """Its kernel, started before anybody asked for it, has the variables; the pool fills up again.

    SIGTERM while another one is being made, with or without its kernel yet, ends it with the server.
    """
    server = start_e2b_local()
    starts.append(server)
    for number in ("1", "2"):
        deadline = time.monotonic() + 30
        while server.warm() == 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert server.warm() == 1
        with Sandbox.create(envs={"N": number}, **server.options) as sandbox:
            found = sandbox.run_code("import os; print(os.environ['N'], os.environ['E2B_SANDBOX_ID'])")
            assert "".join(found.logs.stdout) == f"{number} {sandbox.sandbox_id}\n"
            assert sandbox.run_code("1").execution_count == 2
    processes = {(pid, _started(pid)) for pid in descendants(server.pid)}
    assert processes
    begun = time.monotonic()
    assert server.stop() == 0
    while _alive(processes) and time.monotonic() - begun < 5:
        time.sleep(0.02)
    assert _alive(processes) == set()
    assert time.monotonic() - begun < 5


@pytest.mark.usefixtures("isolated")
def test_a_living_server_is_left_alone_by_the_next(server: E2BLocal, starts: list[E2BLocal]) -> None:
    """Two servers at once do not clear each other away, and have different keys."""
    with Sandbox.create(**server.options) as sandbox:
        other = start_e2b_local("--pool", "0")
        starts.append(other)
        assert server.api_key != other.api_key
        assert sandbox.commands.run("echo here").stdout == "here\n"
    with Sandbox.create(**server.options) as sandbox:
        assert sandbox.commands.run("echo here").stdout == "here\n"


def test_without_bubblewrap_it_refuses_and_says_how_to_go_on(tmp_path: pathlib.Path) -> None:
    """One line names what is missing, the package, and the option to do without."""
    refused = _run("serve", "--port", "0", env={"PATH": str(tmp_path)})
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr.count("\n") == 1
    for part in ("bubblewrap is not installed", "apt-get install bubblewrap", "--no-isolation"):
        assert part in refused.stderr


def test_beyond_loopback_it_wants_a_key_of_your_own() -> None:
    """A random key that only this terminal shows is no protection on a network."""
    refused = _run("serve", "--host", "0.0.0.0")
    assert refused.returncode == 1
    assert "--api-key" in refused.stderr


def test_without_isolation_it_says_so_loudly_and_works(starts: list[E2BLocal]) -> None:
    """Plain processes have a home of their own, which /home/user names in files and folders to work in."""
    server = start_e2b_local("--no-isolation", "--pool", "0")
    starts.append(server)
    assert "NO ISOLATION" in server.log()
    with Sandbox.create(**server.options) as sandbox, Sandbox.create(**server.options) as other:
        sandbox.files.write("/home/user/project/a.txt", "text")
        assert sandbox.commands.run("cat a.txt", cwd="/home/user/project").stdout == "text"
        assert [each.path for each in sandbox.files.list("/home/user")] == ["/home/user/project"]
        assert sandbox.run_code("open('project/a.txt').read()").text == "text"
        found = sandbox.commands.run("command -v python; python -c 'import pytest'").stdout
        assert found == f"{pathlib.Path(sys.executable).parent}/python\n"
        assert other.files.list("/home/user") == []


def test_variables_of_the_template(starts: list[E2BLocal]) -> None:
    """Those of `--env` are in each program of each sandbox, below what a create or a call says."""
    server = start_e2b_local(*isolation_arguments(), "--pool", "0", "--env", "A=1=2", "--env", "B=template")
    starts.append(server)
    with Sandbox.create(envs={"B": "created"}, **server.options) as sandbox:
        assert sandbox.commands.run("echo $A $B").stdout == "1=2 created\n"
        assert sandbox.run_code("import os; print(os.environ['A'], os.environ['B'])").logs.stdout == [
            "1=2 created\n"
        ]
    refused = _run("serve", "--env", "1A=x")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "'1A=x' is not NAME=VALUE" in refused.stderr


@pytest.mark.usefixtures("isolated")
def test_at_most_so_many_run_at_once(starts: list[E2BLocal]) -> None:
    """One more is a 429 in E2B's words; a paused one makes room, and comes back when there is some."""
    server = start_e2b_local("--max-running", "1", "--pool", "0")
    starts.append(server)
    server.inject("late", "nothing")  # a fault in force must not slow others down
    first = Sandbox.create(**server.options)
    with pytest.raises(RateLimitException, match="maximum number of concurrent E2B sandboxes"):
        Sandbox.create(**server.options)
    first.pause()
    second = Sandbox.create(**server.options)
    with pytest.raises(RateLimitException):
        first.connect()
    second.kill()
    first.connect()
    assert first.is_running()


def test_the_log_tells_each_sandboxs_life(server: E2BLocal) -> None:
    """Created, paused, resumed, killed: a line each, with the sandbox and why."""
    sandbox = Sandbox.create(metadata={"for": "log"}, **server.options)
    sandbox.pause()
    sandbox.connect()
    sandbox.kill()
    lines = [line for line in server.log().splitlines() if sandbox.sandbox_id in line]
    for line, word in zip(lines, ("created", "paused", "resumed", "killed"), strict=True):
        assert f"{word} {sandbox.sandbox_id} (" in line
    assert "{'for': 'log'}" in lines[0]


@pytest.mark.usefixtures("isolated")
def test_list_and_kill_on_the_command_line(server: E2BLocal) -> None:
    """They talk to the server that the variables name, and say when there is nothing."""
    sandbox = Sandbox.create(metadata={"key": "value"}, **server.options)
    listed = _run("list", env=server.env)
    line = next(line for line in listed.stdout.splitlines() if sandbox.sandbox_id in line)
    assert "running" in line
    assert "key=value" in line
    assert _run("kill", sandbox.sandbox_id, env=server.env).stdout == f"killed {sandbox.sandbox_id}\n"
    again = _run("kill", sandbox.sandbox_id, env=server.env)
    assert (again.returncode, again.stderr) == (1, f"no sandbox {sandbox.sandbox_id}\n")
    lost = _run("list", env={"E2B_API_URL": "", "E2B_API_KEY": ""})
    assert lost.returncode == 1
    assert "E2B_API_URL" in lost.stderr


def _run(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "e2b_local.main", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **(env or {})}, timeout=60, check=False
    )
