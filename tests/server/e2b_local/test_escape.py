"""What code in a sandbox must not be able to do, each thing tried."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import secrets
from collections.abc import AsyncIterator

import pytest
from e2b import CommandExitException, FileNotFoundException, SandboxException
from e2b_code_interpreter import AsyncSandbox

from support.e2b_process import E2BLocal, MakeSandbox

pytestmark = pytest.mark.usefixtures("isolated")


async def _shell(sandbox: AsyncSandbox, command: str) -> str:
    """Run a command and return its output and exit code, whatever that is."""
    result = await sandbox.commands.run(f"( {command} ) 2>&1; echo exit $?", timeout=120)
    return result.stdout


async def test_host_files_are_not_there(shared: AsyncSandbox, tmp_path: pathlib.Path) -> None:
    """Home folders, the project, temporary files and secrets of the host cannot be read."""
    secret = tmp_path / "secret"
    secret.write_text("host secret")
    here = pathlib.Path(__file__)
    for path in (secret, here, here.parents[3] / "pyproject.toml", pathlib.Path("/etc/shadow")):
        assert "exit 1" in await _shell(shared, f"cat '{path}'"), path
        with pytest.raises((FileNotFoundException, SandboxException)):
            await shared.files.read(str(path))
    assert await _shell(shared, "ls /home") == "user\nexit 0\n"
    assert await _shell(shared, "ls /run") == "e2b\nexit 0\n"
    assert tmp_path.relative_to("/").parts[1] not in await _shell(shared, "ls /tmp")


async def test_what_is_the_hosts_cannot_be_written(shared: AsyncSandbox) -> None:
    """Nothing that a program can write lies on a filesystem of the host; Python's packages least of all."""
    found = await _shell(
        shared,
        "find / -xdev -type d -writable > /tmp/writable; find /home /tmp /etc /dev /run -type d -writable"
        " >> /tmp/writable 2> /dev/null; sort -u /tmp/writable | xargs stat -f -c %T | sort -u; echo;"
        "for d in /usr /usr/bin /bin /lib /root /.e2b-local /.e2b-local/inbox"
        ' "$(python -c \'import numpy; print(numpy.__path__[0])\')" "$(dirname $(which python))";'
        ' do touch "$d/x" 2>/dev/null && echo "wrote $d"; done;'
        "for f in /etc/hosts /etc/passwd /etc/profile; do rm -f $f; echo x >> $f; done 2> /dev/null; true",
    )
    kinds, _, written = found.partition("\n\n")
    assert set(kinds.split()) <= {"tmpfs", "devpts"}
    assert written == "exit 0\n"
    assert "e2b.local" in await shared.files.read("/etc/hosts")


async def test_the_agent_cannot_be_replaced(shared: AsyncSandbox) -> None:
    """No folder that leads to what it imports can be renamed, also not where the sandbox owns its root."""
    await shared.files.write(
        "rename.py",
        "import os, pathlib, sys\n"
        "ends = ['/.e2b-local/inbox', '/etc/ld.so.cache', sys.executable, os.__file__]\n"
        "ends += [each for each in ('/lib', '/lib64') if os.path.exists(each)]\n"
        "for end in map(pathlib.Path, ends):\n"
        "    for folder in (end, *end.parents[:-1]):\n"
        "        try:\n            os.rename(folder, f'{folder}.away')\n            print(folder)\n"
        "        except OSError:\n            pass\n",
    )
    assert (await shared.commands.run("python rename.py")).stdout == ""


async def test_host_processes_cannot_be_seen_or_signalled(server: E2BLocal, shared: AsyncSandbox) -> None:
    """Only the sandbox's own processes are listed; the server's id names nothing inside."""
    listed = await _shell(shared, "ps -eo pid=,args= | wc -l; ls /proc | grep -c '^[0-9]'")
    assert all(int(line) < 10 for line in listed.splitlines()[:2])
    assert "exit 1" in await _shell(shared, f"test -e /proc/{server.pid}")
    assert "No such process" in await _shell(shared, f"kill -9 {server.pid}")
    assert server.process.poll() is None


async def test_the_host_environment_does_not_leak(shared: AsyncSandbox) -> None:
    """No variable of the server reaches a command, a cell or the agent inside."""
    shown = await _shell(shared, "cat /proc/*/environ | tr '\\0' '\\n'")
    cell = await shared.run_code("import os; print('\\n'.join(f'{k}={v}' for k, v in os.environ.items()))")
    leaked = {
        "PYTEST_CURRENT_TEST",
        "PYTEST_VERSION",
        "E2B_API_KEY",
        "E2B_LOCAL_TEST_SECRET",
        "SSH_AUTH_SOCK",
    }
    for text in (shown, "".join(cell.logs.stdout)):
        assert not {line.partition("=")[0] for line in text.splitlines()} & leaked


async def test_it_has_no_privileges(shared: AsyncSandbox) -> None:
    """No capability, no way to gain one, not root, and not root on the host either."""
    status = await _shell(shared, "cat /proc/1/status /proc/self/status; id -u")
    lines = [line.split() for line in status.splitlines()]
    # Inherited, permitted, effective, bounding and ambient, of the agent and of a command.
    assert [line[1] for line in lines if line[0].startswith("Cap")] == ["0" * 16] * 10
    assert [line[1] for line in lines if line[0] == "NoNewPrivs:"] == ["1", "1"]
    assert [line[1] for line in lines if line[0] == "Seccomp:"] == ["2", "2"]
    assert ["0"] not in lines
    for command in (
        "mount -t tmpfs none /mnt",
        "chroot / true",
        "mknod /tmp/sda b 8 0",
        "su -c true",
        "hostname x",
    ):
        assert "exit 0" not in await _shell(shared, command), command


def _owners(mark: str) -> list[int]:
    """Return the host users of the processes whose command line has this mark."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # another one that just ended
            if mark in (path / "cmdline").read_text(errors="replace"):
                found.append(path.stat().st_uid)
    return found


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
        owners = await asyncio.to_thread(_owners, mark)
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


async def test_the_network_is_its_own(server: E2BLocal, shared: AsyncSandbox, host_port: int) -> None:
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
    assert "".join((await shared.run_code(code)).logs.stdout) == "['lo']\n"


async def test_sandboxes_do_not_reach_each_other(shared: AsyncSandbox, make_sandbox: MakeSandbox) -> None:
    """Files, ports, shared memory and abstract sockets of one are not there for another."""
    first, second = shared, await make_sandbox()
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
    for sandbox, reached in ((first, "True True\n"), (second, "False False\n")):
        await sandbox.files.write("reach.py", reach)
        assert (await sandbox.commands.run("python reach.py")).stdout == reached
    assert await second.files.exists("/tmp/mine") is False
    assert await second.files.exists("mine") is False


async def test_links_and_dots_do_not_lead_out(shared: AsyncSandbox) -> None:
    """Links to host paths and to /proc, in any part of a path, find only what is inside."""
    here = pathlib.Path(__file__)
    await shared.commands.run(
        f"ln -s '{here.parent}' folder; ln -s / root; ln -s /proc/1/root proc; ln -s /proc/self/fd fds;"
        f" ln -s '{here}' file"
    )
    for path in (f"folder/{here.name}", "file", f"root{here}", f"proc{here}", "fds/0", f"../../../..{here}"):
        with pytest.raises(SandboxException):
            await shared.files.read(path)
    with pytest.raises(SandboxException):
        await shared.files.write("folder/planted", "x")
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
