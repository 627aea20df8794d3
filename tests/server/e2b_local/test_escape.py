"""What code in a sandbox must not be able to do, each thing tried."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import secrets
from collections.abc import AsyncIterator, Iterator

import pytest
from e2b import CommandExitException, FileNotFoundException, NotEnoughSpaceException, SandboxException
from e2b_code_interpreter import AsyncSandbox

from support.e2b_process import E2BLocal, MakeSandbox, start_e2b_local

pytestmark = pytest.mark.usefixtures("isolated")


async def _shell(sandbox: AsyncSandbox, command: str) -> str:
    """Run a command and return its output and exit code, whatever that is."""
    result = await sandbox.commands.run(f"( {command} ) 2>&1; echo exit $?", timeout=120)
    return result.stdout


async def test_host_files_are_not_there(sandbox: AsyncSandbox, tmp_path: pathlib.Path) -> None:
    """Home folders, the project, temporary files and secrets of the host cannot be read."""
    secret = tmp_path / "secret"
    secret.write_text("host secret")
    here = pathlib.Path(__file__)
    for path in (secret, here, here.parents[3] / "pyproject.toml", pathlib.Path("/etc/shadow")):
        assert "exit 1" in await _shell(sandbox, f"cat '{path}'"), path
        with pytest.raises((FileNotFoundException, SandboxException)):
            await sandbox.files.read(str(path))
    assert await _shell(sandbox, "ls /home") == "user\nexit 0\n"
    assert await _shell(sandbox, "ls /run") == "e2b\nexit 0\n"
    assert tmp_path.relative_to("/").parts[1] not in await _shell(sandbox, "ls /tmp")


async def test_only_its_own_folders_can_be_written(sandbox: AsyncSandbox) -> None:
    """Only home, /tmp, /dev/shm and the run folder take files; Python's packages least of all."""
    found = await _shell(
        sandbox,
        "find / -xdev -path /proc -prune -o -type d -writable -print 2>/dev/null;"
        "find /home /dev -type d -writable 2>/dev/null;"
        "for d in / /usr /etc /opt \"$(python -c 'import numpy; print(numpy.__path__[0])')\";"
        ' do touch "$d/x" 2>/dev/null && echo "wrote $d"; done; true',
    )
    written = {line for line in found.splitlines() if line.startswith(("wrote", "/"))}
    own = ("/home", "/dev/shm", "/dev/pts", "/tmp", "/run/e2b")
    assert {line for line in written if not line.startswith(own)} == set()


async def test_host_processes_cannot_be_seen_or_signalled(server: E2BLocal, sandbox: AsyncSandbox) -> None:
    """Only the sandbox's own processes are listed; the server's id names nothing inside."""
    listed = await _shell(sandbox, "ps -eo pid=,args= | wc -l; ls /proc | grep -c '^[0-9]'")
    assert all(int(line) < 10 for line in listed.splitlines()[:2])
    assert "exit 1" in await _shell(sandbox, f"test -e /proc/{server.pid}")
    assert "No such process" in await _shell(sandbox, f"kill -9 {server.pid}")
    assert server.process.poll() is None


async def test_the_host_environment_does_not_leak(sandbox: AsyncSandbox) -> None:
    """No variable of the server reaches a command, a cell or the agent inside."""
    shown = await _shell(sandbox, "cat /proc/*/environ | tr '\\0' '\\n'")
    cell = await sandbox.run_code("import os; print('\\n'.join(f'{k}={v}' for k, v in os.environ.items()))")
    leaked = {
        "PYTEST_CURRENT_TEST",
        "PYTEST_VERSION",
        "E2B_API_KEY",
        "E2B_LOCAL_TEST_SECRET",
        "SSH_AUTH_SOCK",
    }
    for text in (shown, "".join(cell.logs.stdout)):
        assert not {line.partition("=")[0] for line in text.splitlines()} & leaked


async def test_it_has_no_privileges(sandbox: AsyncSandbox) -> None:
    """No capability, no way to gain one, not root, and not root on the host either."""
    status = await _shell(sandbox, "grep -E '^(Cap|NoNewPrivs)' /proc/self/status; id -u")
    lines = [line.split() for line in status.splitlines()]
    assert all(line[1] == "0" * 16 for line in lines if line[0].startswith("Cap"))
    assert ["NoNewPrivs:", "1"] in lines
    assert ["0"] not in lines
    for command in (
        "mount -t tmpfs none /mnt",
        "chroot / true",
        "mknod /tmp/sda b 8 0",
        "su -c true",
        "hostname x",
    ):
        assert "exit 0" not in await _shell(sandbox, command), command


async def test_every_sandbox_is_another_host_user_under_root(
    server: E2BLocal, make_sandbox: MakeSandbox
) -> None:
    """Run as root, each sandbox's processes belong to an unprivileged host user of their own."""
    if os.geteuid() != 0:
        pytest.skip("only root can give each sandbox a user of its own")
    users = set()
    for _ in range(2):
        sandbox = await make_sandbox()
        mark = secrets.token_hex(8)
        handle = await sandbox.commands.run(f"exec -a {mark} sleep 1000", background=True)
        owners = [
            path.stat().st_uid
            for path in pathlib.Path("/proc").glob("[0-9]*")  # noqa: ASYNC240 - nothing else runs in this loop
            if mark in (path / "cmdline").read_text(errors="replace")
        ]
        await handle.kill()
        assert len(owners) == 1
        users.update(owners)
    assert len(users) == 2
    assert 0 not in users


@pytest.fixture
async def host_port() -> AsyncIterator[int]:
    """A server on the host's loopback that answers everybody."""

    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"reached the host")
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield listening.sockets[0].getsockname()[1]
    listening.close()


async def test_the_network_is_its_own(server: E2BLocal, sandbox: AsyncSandbox, host_port: int) -> None:
    """Neither the host's loopback, nor this server's control plane, nor anything beyond is reachable."""
    control_port = int(server.api_url.rpartition(":")[2])
    code = f"""
import socket
for host, port in [("127.0.0.1", {host_port}), ("127.0.0.1", {control_port}), ("::1", {control_port}),
                   ("localhost", {control_port}), ("8.8.8.8", 53), ("169.254.169.254", 80)]:
    try:
        socket.create_connection((host, port), 3)
        print("reached", host, port)
    except OSError:
        pass
print([name for _, name in socket.if_nameindex()])
"""
    assert (await sandbox.run_code(code)).logs.stdout == ["['lo']\n"]


async def test_sandboxes_do_not_reach_each_other(make_sandbox: MakeSandbox) -> None:
    """Files, ports, shared memory and abstract sockets of one are not there for another."""
    first, second = await make_sandbox(), await make_sandbox()
    await first.files.write("/tmp/mine", "1")
    await first.files.write("mine", "1")
    ready = asyncio.Event()
    await first.commands.run(
        "python -c \"import socket, time; a = socket.socket(socket.AF_UNIX); a.bind('\\0mine'); a.listen();"
        "b = socket.create_server(('127.0.0.1', 9123)); print('ready', flush=True); time.sleep(1000)\"",
        background=True,
        on_stdout=lambda _: ready.set(),
    )
    await ready.wait()
    reach = (
        "import socket, sys\n"
        "def reach(family, where):\n"
        "    try:\n"
        "        socket.socket(family).connect(where)\n"
        "        return True\n"
        "    except OSError:\n"
        "        return False\n"
        "print(reach(socket.AF_UNIX, '\\0mine'), reach(socket.AF_INET, ('127.0.0.1', 9123)))"
    )
    assert (await first.run_code(reach)).logs.stdout == ["True True\n"]
    assert (await second.run_code(reach)).logs.stdout == ["False False\n"]
    assert await second.files.exists("/tmp/mine") is False
    assert await second.files.exists("mine") is False


async def test_links_and_dots_do_not_lead_out(sandbox: AsyncSandbox) -> None:
    """Links to host paths and to /proc, in any part of a path, find only what is inside."""
    here = pathlib.Path(__file__)
    await sandbox.commands.run(
        f"ln -s '{here.parent}' folder; ln -s / root; ln -s /proc/1/root proc; ln -s /proc/self/fd fds;"
        f" ln -s '{here}' file"
    )
    for path in (f"folder/{here.name}", "file", f"root{here}", f"proc{here}", "fds/0", f"../../../..{here}"):
        with pytest.raises(SandboxException):
            await sandbox.files.read(path)
    with pytest.raises(SandboxException):
        await sandbox.files.write("folder/planted", "x")
    assert not (here.parent / "planted").exists()


async def test_the_agent_cannot_be_ended_from_inside(sandbox: AsyncSandbox) -> None:
    """Process 1 survives every signal, cannot be traced, and the sandbox goes on."""
    await _shell(sandbox, "kill -9 1; kill -TERM 1; kill -INT 1; kill -STOP 1; kill -SEGV 1; kill -ABRT 1")
    with contextlib.suppress(CommandExitException):  # it may or may not end the command itself
        await sandbox.commands.run("kill -9 -1")
    tried = await _shell(
        sandbox,
        "python -c 'import ctypes; print(ctypes.CDLL(None).ptrace(16, 1, 0, 0))'; head -c1 /proc/1/mem",
    )
    assert "-1" in tried
    assert "Permission denied" in tried
    assert (await sandbox.commands.run("echo alive")).stdout == "alive\n"
    assert (await sandbox.run_code("1 + 1")).text == "2"


@pytest.fixture(scope="module")
def small_server(isolated: None) -> Iterator[E2BLocal]:
    """A server whose sandboxes may use little."""
    running = start_e2b_local(
        "--memory-mb", "300", "--disk-mb", "20", "--processes", "80", "--cpu-s", "2", "--pool", "0",
        env={"E2B_LOCAL_TEST_SECRET": "x"},
    )  # fmt: skip
    yield running
    assert running.stop() == 0


@pytest.fixture
async def small(small_server: E2BLocal) -> AsyncIterator[AsyncSandbox]:
    """A sandbox that may use little."""
    sandbox = await AsyncSandbox.create(**small_server.options)
    yield sandbox
    await sandbox.kill()


@pytest.mark.parametrize("folder", ["/home/user", "/tmp", "/dev/shm"])
async def test_the_disk_is_bounded(small: AsyncSandbox, folder: str) -> None:
    """Filling it ends in an error that says so, here and not on the host; there is room again afterwards."""
    shown = await _shell(small, f"head -c 400M /dev/zero > {folder}/full")
    assert "No space left on device" in shown
    if folder != "/dev/shm":
        with pytest.raises(NotEnoughSpaceException):
            await small.files.write(f"{folder}/more", "x" * 100_000)
    await small.files.remove(f"{folder}/full")
    await small.files.write(f"{folder}/more", "x" * 100_000)


async def test_the_memory_of_a_process_is_bounded(small: AsyncSandbox) -> None:
    """One greedy program gets an error it can handle."""
    execution = await small.run_code("x = bytearray(2_000_000_000)")
    assert execution.error is not None
    assert execution.error.name == "MemoryError"
    assert (await small.run_code("1 + 1")).text == "2"


async def test_the_memory_of_all_processes_is_bounded(small: AsyncSandbox) -> None:
    """Many greedy programs are killed one after the other; the sandbox stays usable."""
    greedy = "python -c 'x = b\"x\" * 150_000_000; import time; time.sleep(1000)'"
    with pytest.raises(CommandExitException) as caught:
        await small.commands.run(
            f"for i in 1 2 3 4 5; do {greedy} > /dev/null 2>&1 & done; wait -n; exit $?", timeout=120
        )
    assert caught.value.exit_code == 128 + 9
    await small.commands.run("pkill -f '[t]ime.sleep' || true")
    assert (await small.commands.run("echo fine")).stdout == "fine\n"


_HOARDS = {
    "anonymous": "mmap.mmap(-1, size).write(b'x' * size)",
    "unnamed file": "os.write(os.memfd_create('m'), b'x' * size)",
    "System V": "c.shmdt(c.memset(c.shmat(c.shmget(0, size, 0o1600), None, 0), 1, size))",
}


@pytest.mark.parametrize("hoard", _HOARDS.values(), ids=_HOARDS)
async def test_shared_memory_is_bounded(small: AsyncSandbox, hoard: str) -> None:
    """Memory that no process has alone, or none at all any more, counts as well."""
    code = (
        "import ctypes, gc, mmap, os, time\nc, size = ctypes.CDLL(None), 20 << 20\n"
        "c.shmat.restype = c.memset.restype = ctypes.c_void_p\n"
        "c.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]\n"
        "c.shmdt.argtypes = [ctypes.c_void_p]\nkept = []\nold = mmap.mmap\n"
        "mmap.mmap = lambda *a: kept.append(old(*a)) or kept[-1]\n"
        f"for _ in range(60):\n    {hoard}\n    time.sleep(0.02)\n"
    )
    await small.files.write("hoard.py", code)
    with contextlib.suppress(CommandExitException):
        await small.commands.run("exec python hoard.py", timeout=60)
    left = "python -c 'print(sum(int(l.split()[14]) for l in list(open(\"/proc/sysvipc/shm\"))[1:]))'"
    async with asyncio.timeout(30):
        while int((await small.commands.run(left)).stdout) > 300 << 20:
            pass
    assert await small.is_running()
    assert (await small.commands.run("echo fine")).stdout == "fine\n"


async def test_programs_go_before_the_agent(small: AsyncSandbox) -> None:
    """When memory is short the kernel kills what a command or a cell has started, not the agent."""
    shown = await small.commands.run("for i in 1 2 3; do cat /proc/self/oom_score_adj & done; wait")
    assert shown.stdout == "300\n" * 3
    cell = await small.run_code("print(open('/proc/self/oom_score_adj').read(), end='')")
    assert cell.logs.stdout == ["300\n"]
    assert int((await small.commands.run("cat /proc/1/oom_score_adj")).stdout) < 300


async def test_a_fork_bomb_is_bounded(small: AsyncSandbox) -> None:
    """It hits the limit; the server answers, and killing the sandbox ends all of it."""
    bomb = "import os, time\nwhile True:\n  try:\n    os.fork()\n  except OSError:\n    time.sleep(0.05)\n"
    await small.files.write("bomb.py", bomb)
    await small.commands.run("exec -a bomb python bomb.py", background=True)
    async with asyncio.timeout(60):
        while True:
            try:
                count = int((await small.commands.run("ps -e | grep -c python || true")).stdout)
            except (SandboxException, ValueError):
                break  # not even a command fits any more
            if count >= 70:
                break
    assert await small.is_running()
    assert await small.kill() is True


async def test_cpu_time_is_bounded(small: AsyncSandbox) -> None:
    """A program that only burns time is told that its time is over."""
    with pytest.raises(CommandExitException) as caught:
        await small.commands.run("exec python -c 'while True: pass'", timeout=60)
    assert caught.value.error == "signal: cpu time limit exceeded"
