"""What a sandbox may use at most, each limit run into."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest
from e2b import CommandExitException, NotEnoughSpaceException, SandboxException
from e2b_code_interpreter import AsyncSandbox

from support.e2b_process import E2BLocal, start_e2b_local

pytestmark = pytest.mark.usefixtures("isolated")


@pytest.fixture(scope="module")
def small_server(isolated: None) -> Iterator[E2BLocal]:
    """A server whose sandboxes may use little."""
    running = start_e2b_local(
        "--memory-mb", "300", "--disk-mb", "20", "--processes", "80", "--cpu-s", "2", "--pool", "0",
    )  # fmt: skip
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
async def small(small_server: E2BLocal) -> AsyncIterator[AsyncSandbox]:
    """A sandbox that may use little, for tests that free again what they took."""
    sandbox = await AsyncSandbox.create(**small_server.options)
    yield sandbox
    await sandbox.kill()


@pytest.fixture
async def doomed(small_server: E2BLocal) -> AsyncIterator[AsyncSandbox]:
    """One that may use little, and need not be usable afterwards."""
    sandbox = await AsyncSandbox.create(**small_server.options)
    yield sandbox
    await sandbox.kill()


@pytest.mark.parametrize("folder", ["/home/user", "/tmp", "/workspace", "/dev/shm"])
async def test_the_disk_is_bounded(small: AsyncSandbox, folder: str) -> None:
    """Filling it ends in an error that says so, here and not on the host; there is room again afterwards."""
    await small.files.make_dir(folder)
    with pytest.raises(CommandExitException, match="No space left on device"):
        await small.commands.run(f"head -c 400M /dev/zero > {folder}/full")
    if folder != "/dev/shm":
        with pytest.raises(NotEnoughSpaceException):
            await small.files.write(f"{folder}/more", "x" * 100_000)
    await small.files.remove(f"{folder}/full")
    await small.files.write(f"{folder}/more", "x" * 100_000)
    await small.files.remove(f"{folder}/more")


async def test_the_memory_of_a_process_is_bounded(small: AsyncSandbox) -> None:
    """One greedy program gets an error it can handle."""
    execution = await small.run_code("x = bytearray(2_000_000_000)")
    assert execution.error is not None
    assert execution.error.name == "MemoryError"
    assert (await small.run_code("1 + 1")).text == "2"


async def test_the_memory_of_all_processes_is_bounded(doomed: AsyncSandbox) -> None:
    """Many greedy programs are killed one after the other; the sandbox stays usable."""
    greedy = "python -c 'x = b\"x\" * 150_000_000; import time; time.sleep(1000)'"
    with pytest.raises(CommandExitException) as caught:
        await doomed.commands.run(
            f"for i in 1 2 3 4 5; do {greedy} > /dev/null 2>&1 & done; wait -n; exit $?", timeout=120
        )
    assert caught.value.exit_code == 128 + 9
    await doomed.commands.run("pkill -f '[t]ime.sleep' || true")
    assert (await doomed.commands.run("echo fine")).stdout == "fine\n"


_HOARDS = {
    "anonymous": "mmap.mmap(-1, size).write(b'x' * size)",
    "unnamed file": "os.write(os.memfd_create('m'), b'x' * size)",
    "System V": "c.shmdt(c.memset(c.shmat(c.shmget(0, size, 0o1600), None, 0), 1, size))",
}


@pytest.mark.parametrize("hoard", _HOARDS.values(), ids=_HOARDS)
async def test_shared_memory_is_bounded(doomed: AsyncSandbox, hoard: str) -> None:
    """Memory that no process has alone, or none at all any more, counts as well."""
    code = (
        "import ctypes, gc, mmap, os, time\nc, size = ctypes.CDLL(None), 20 << 20\n"
        "c.shmat.restype = c.memset.restype = ctypes.c_void_p\n"
        "c.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]\n"
        "c.shmdt.argtypes = [ctypes.c_void_p]\nkept = []\nold = mmap.mmap\n"
        "mmap.mmap = lambda *a: kept.append(old(*a)) or kept[-1]\n"
        f"for _ in range(60):\n    {hoard}\n    time.sleep(0.02)\n"
    )
    await doomed.files.write("hoard.py", code)
    with contextlib.suppress(CommandExitException):
        await doomed.commands.run("exec python hoard.py", timeout=60)
    left = "python -c 'print(sum(int(l.split()[14]) for l in list(open(\"/proc/sysvipc/shm\"))[1:]))'"
    async with asyncio.timeout(30):
        while int((await doomed.commands.run(left)).stdout) > 300 << 20:
            pass
    assert await doomed.is_running()
    assert (await doomed.commands.run("echo fine")).stdout == "fine\n"


_BOOKS = {
    "pipes": "kept = [os.pipe() for _ in range(4000)]",
    "sockets": "kept = [socket.socketpair() for _ in range(4000)]",
    "page tables": (
        "kept = mmap.mmap(-1, 50 << 30, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
        "    kept.madvise(15)\n"  # MADV_NOHUGEPAGE
        "    for at in range(0, 50 << 30, 2 << 20):\n        kept[at]"
    ),
}


@pytest.mark.parametrize("hoard", _BOOKS.values(), ids=_BOOKS)
async def test_what_the_kernel_holds_for_a_program_counts(doomed: AsyncSandbox, hoard: str) -> None:
    """Pipes, sockets and page tables are memory of the host: who has too many of them is killed."""
    program = (
        "import mmap, os, signal, socket\nchildren = []\n"
        "for _ in range(12):\n"
        "    child = os.fork()\n    children.append(child)\n    if child:\n        continue\n"
        f"    {hoard}\n"
        "    signal.pause()\n"
        "first, status = os.wait()\nprint(os.waitstatus_to_exitcode(status))\n"
        "for child in set(children) - {first}:\n    os.kill(child, 9)\n"
    )
    await doomed.files.write("books.py", program)
    assert (await doomed.commands.run("python books.py", timeout=120)).stdout == "-9\n"
    assert (await doomed.commands.run("echo fine")).stdout == "fine\n"


_OBJECTS = {
    "queues": (
        "q = c.msgget(0, 0o1600)\n    for _ in range(2):\n        c.msgsnd(q, message, 8000, 0o4000)",
        "msg",
    ),
    "semaphores": ("c.semget(0, 250, 0o1600)", "sem"),
}


@pytest.mark.parametrize(("make", "kind"), _OBJECTS.values(), ids=_OBJECTS)
async def test_system_v_objects_are_bounded(doomed: AsyncSandbox, make: str, kind: str) -> None:
    """Queues and semaphores stay when their program has ended: beyond the limit they are removed."""
    program = (
        "import ctypes\nc = ctypes.CDLL(None)\nmessage = ctypes.create_string_buffer(b'\\1' * 9000)\n"
        f"for _ in range(32000):\n    {make}\n"
    )
    await doomed.files.write("objects.py", program)
    await doomed.commands.run("python objects.py", timeout=120)
    async with asyncio.timeout(60):
        while int((await doomed.commands.run(f"wc -l < /proc/sysvipc/{kind}")).stdout) > 20_000:
            pass
    assert (await doomed.commands.run("echo fine")).stdout == "fine\n"


async def test_programs_go_before_the_agent(small: AsyncSandbox) -> None:
    """When memory is short the kernel kills what a command or a cell has started, not the agent."""
    shown = await small.commands.run("for i in 1 2 3; do cat /proc/self/oom_score_adj & done; wait")
    assert shown.stdout == "300\n" * 3
    cell = await small.run_code("print(open('/proc/self/oom_score_adj').read(), end='')")
    assert "".join(cell.logs.stdout) == "300\n"
    # The agent takes its own score back just after the command has begun.
    lower = 'until [ "$(cat /proc/1/oom_score_adj)" -lt 300 ]; do :; done'
    assert (await small.commands.run(lower, timeout=30)).exit_code == 0


async def test_a_fork_bomb_is_bounded(doomed: AsyncSandbox) -> None:
    """It hits the limit; the server answers, and killing the sandbox ends all of it."""
    bomb = "import os, time\nwhile True:\n  try:\n    os.fork()\n  except OSError:\n    time.sleep(0.05)\n"
    await doomed.files.write("bomb.py", bomb)
    await doomed.commands.run("exec -a bomb python bomb.py", background=True)
    async with asyncio.timeout(60):
        while True:
            try:
                # In place of its shell, which would try to fork for 15 s before it gives up.
                shown = await doomed.commands.run("exec ps -e")
            except SandboxException:
                break  # not even a command fits any more
            if shown.stdout.count("python") >= 70:
                break
    assert await doomed.is_running()
    assert await doomed.kill() is True


async def test_cpu_time_is_bounded(small: AsyncSandbox) -> None:
    """A program that only burns time is told that its time is over."""
    with pytest.raises(CommandExitException) as caught:
        await small.commands.run("exec python -c 'while True: pass'", timeout=60)
    assert caught.value.error == "signal: cpu time limit exceeded"


_ENTRIES = {
    "files": "os.close(os.open(name, os.O_CREAT))",
    "folders": "os.mkdir(name)",
    "links": "os.symlink('x' * 90, name)",
    "hard links": "os.link('first', name)",
    "pipes": "os.mkfifo(name)",
    "sockets": "socket.socket(socket.AF_UNIX).bind(name)",
    "attributes": "os.setxattr('first', 'user.' + name, b'x' * 900)",
}


@pytest.mark.parametrize("folder", ["/home/user", "/tmp", "/workspace", "/dev/shm"])
@pytest.mark.parametrize("make", _ENTRIES.values(), ids=_ENTRIES)
async def test_the_number_of_files_is_bounded(small: AsyncSandbox, folder: str, make: str) -> None:
    """Those without content cost memory too: they end like a full disk; there is room again afterwards."""
    program = (
        f"import os, shutil, socket\nos.makedirs('{folder}/many')\nos.chdir('{folder}/many')\n"
        "open('first', 'w').close()\nmade = 0\n"
        "try:\n"
        "    for made in range(300_000):\n"
        f"        name = f'{{made:07}}' + 'n' * 90\n        {make}\n"
        "    print('all were made')\n"
        "except OSError as exc:\n    print(exc.strerror)\n"
        f"os.chdir('/')\nshutil.rmtree('{folder}/many')\n"
    )
    await small.files.write("/home/user/many.py", program)
    shown = (await small.commands.run("python many.py", timeout=120)).stdout
    # Before Linux 6.6 a memory filesystem keeps no attributes of a user's.
    assert shown in ("No space left on device\n", *(["Operation not supported\n"] * ("setxattr" in make)))
    await small.files.write(f"{folder}/more", "x")
    await small.files.remove(f"{folder}/more")


async def test_terminals_are_bounded(small: AsyncSandbox) -> None:
    """One sandbox cannot take all that the machine has for every sandbox and for itself."""
    program = (
        "import pty\nkept = []\n"
        "try:\n    while len(kept) < 3000:\n        kept += pty.openpty()\n"
        "except OSError as exc:\n    print(len(kept) // 2 <= 256)\n"
    )
    await small.files.write("terminals.py", program)
    assert (await small.commands.run("python terminals.py")).stdout == "True\n"
