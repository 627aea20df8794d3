"""What the kernel is told to refuse to programs of a sandbox, tried from inside."""

from __future__ import annotations

import json
import platform
from typing import Any

import pytest
from e2b_code_interpreter import AsyncSandbox

pytestmark = pytest.mark.usefixtures("isolated")

_CALL = (
    "import ctypes, errno, json, os, signal, socket\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    "def call(*arguments):\n"
    "    if libc.syscall(*map(ctypes.c_long, arguments)) >= 0:\n"
    "        return 'done'\n"
    "    return errno.errorcode[ctypes.get_errno()]\n"
)
# Name, number on x86-64 and on ARM, arguments with which an ordinary program may make the call or find that
# they make no sense (EFAULT, EINVAL), and how it ends here.
_CALLS: dict[str, tuple[int, int, tuple[int, ...], str]] = {
    "add_key": (248, 217, (0, 0, 0, 0, 0), "EPERM"),
    "bpf": (321, 280, (0, 0, 0), "EPERM"),
    "clone3": (435, 435, (0, 0), "ENOSYS"),
    "fanotify_init": (300, 262, (0x200, 0), "EPERM"),
    "io_uring_setup": (425, 425, (1, 0), "ENOSYS"),
    "kcmp": (312, 272, (1, 1, 5, 0, 0), "EPERM"),
    "keyctl": (250, 219, (0, -3, 1), "EPERM"),
    "memfd_secret": (447, 447, (0,), "ENOSYS"),
    "name_to_handle_at": (303, 264, (-100, 0, 0, 0, 0), "EPERM"),
    "open_tree": (428, 428, (-100, 0, 0), "EPERM"),
    "perf_event_open": (298, 241, (0, 0, -1, -1, 0), "EPERM"),
    "personality": (135, 92, (0x0040000,), "EPERM"),
    "process_vm_readv": (310, 270, (1, 0, 0, 0, 0, 0), "EPERM"),
    "request_key": (249, 218, (0, 0, 0, 0), "EPERM"),
    "semget": (64, 190, (0, 32000, 0o1600), "EINVAL"),
    "setns": (308, 268, (-1, 0), "EPERM"),
    "syslog": (103, 116, (10, 0, 0), "EPERM"),
    "userfaultfd": (323, 282, (1,), "EPERM"),
    "vmsplice": (316, 75, (-1, 0, 0, 0), "ENOSYS"),
    "younger than the list": (600, 600, (), "ENOSYS"),
}


async def _told(sandbox: AsyncSandbox, program: str) -> Any:
    """Run a program that may make system calls and return the JSON it prints."""
    await sandbox.files.write("calls.py", _CALL + program)
    return json.loads((await sandbox.commands.run("python calls.py")).stdout)


async def test_no_namespace_and_so_no_capability_can_be_made(shared: AsyncSandbox) -> None:
    """Neither a user namespace nor another kind, by unshare, by clone or by entering one that is there."""
    unshare, clone, setns = (272, 56, 308) if platform.machine() == "x86_64" else (97, 220, 268)
    program = (
        "found = {}\n"
        "for flag in (0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):\n"
        f"    found[f'unshare {{flag:x}}'] = call({unshare}, flag)\n"
        "    if flag > 0x80:\n"
        f"        found[f'clone {{flag:x}}'] = call({clone}, flag | signal.SIGCHLD, 0, 0, 0, 0)\n"
        f"        found[f'user and {{flag:x}}'] = call({unshare}, flag | 0x10000000)\n"
        "for kind in os.listdir('/proc/self/ns'):\n"
        f"    found[kind] = call({setns}, os.open(f'/proc/self/ns/{{kind}}', os.O_RDONLY), 0)\n"
        "print(json.dumps(found))\n"
    )
    assert set((await _told(shared, program)).values()) == {"EPERM"}
    result = await shared.commands.run(
        "unshare -Ur id; unshare -Urm mount -t tmpfs x /mnt; unshare -m id; true"
    )
    assert result.stdout == ""
    assert result.stderr.count("Operation not permitted") == 3


async def test_calls_that_no_template_needs_are_closed(shared: AsyncSandbox) -> None:
    """Keys, BPF, counters, io_uring, handles of files, others' memory, the kernel's log, what is to come."""
    column = 0 if platform.machine() == "x86_64" else 1
    calls = {name: [each[column], *each[2]] for name, each in _CALLS.items()}
    found = await _told(shared, f"print(json.dumps({{n: call(*c) for n, c in {calls}.items()}}))\n")
    assert found == {name: each[3] for name, each in _CALLS.items()}


async def test_only_usual_sockets_can_be_made(shared: AsyncSandbox) -> None:
    """Unix, TCP, UDP and what tells interfaces; not AF_ALG, AF_VSOCK, SCTP or what else could be loaded."""
    program = (
        "def made(*kind):\n"
        "    try:\n        socket.socket(*kind).close()\n        return 'made'\n"
        "    except OSError as exc:\n        return errno.errorcode[exc.errno]\n"
        "families = {f: made(f, 3 if f == 16 else 1, 0) for f in range(1, 50)}\n"
        "protocols = {p: made(2, 2, p) for p in (115, 132, 136, 256, 262)}\n"
        "netlink = {p: made(16, 3, p) for p in range(1, 23)}\n"
        "print(json.dumps([families, protocols, netlink]))\n"
    )
    families, protocols, netlink = await _told(shared, program)
    assert {family for family, how in families.items() if how == "made"} == {"1", "2", "10", "16"}
    assert {how for how in families.values() if how != "made"} == {"EAFNOSUPPORT"}
    assert {*protocols.values(), *netlink.values()} == {"EPROTONOSUPPORT"}


async def test_a_terminal_cannot_be_typed_into(shared: AsyncSandbox) -> None:
    """A program cannot put words into the terminal that it shares with another, nor load a driver for it."""
    program = (
        "import fcntl, pty\n_, end = pty.openpty()\nfound = []\n"
        "os.setsid()\nfcntl.ioctl(end, 0x540E, 0)\n"
        "for request, given in ((0x5412, b'x'), (0x541C, b'x'), (0x5423, b'\\x05\\0\\0\\0')):\n"
        "    try:\n        fcntl.ioctl(end, request, given)\n        found.append('done')\n"
        "    except OSError as exc:\n        found.append(errno.errorcode[exc.errno])\n"
        "print(json.dumps(found))\n"
    )
    await shared.files.write("type.py", _CALL + program)
    # In a process that leads no group yet, which may begin a session.
    shown = (await shared.commands.run("python type.py & wait")).stdout
    assert json.loads(shown) == ["EPERM"] * 3


async def test_system_calls_of_another_kind_end_the_program(shared: AsyncSandbox) -> None:
    """Those of 32-bit x86 kill it, those of x32 are not there: neither is a way around the list."""
    code = {
        "x86_64": "b8140000 00 cd80 c3",  # mov eax, 20; int 0x80; ret
        "aarch64": "",
    }[platform.machine()].replace(" ", "")
    program = (
        "import mmap, subprocess, sys\n"
        f"code = bytes.fromhex({code!r})\n"
        "def jump():\n"
        "    page = mmap.mmap(-1, 4096, prot=7)\n    page.write(code)\n"
        "    address = ctypes.addressof(ctypes.c_char.from_buffer(page))\n"
        "    ctypes.CFUNCTYPE(ctypes.c_int)(address)()\n"
        "if len(sys.argv) > 1:\n    jump()\n"
        "else:\n"
        "    ended = subprocess.run([sys.executable, __file__, '-']).returncode if code else -31\n"
        "    print(json.dumps([ended, call(0x40000000 | 39)]))\n"
    )
    assert await _told(shared, program) == [-31, "ENOSYS"]  # SIGSYS


async def test_what_programs_usually_do_still_works(shared: AsyncSandbox) -> None:
    """Threads, forks, pools, terminals, unnamed files, shared memory, semaphores, a debugger's way in."""
    program = (
        "import concurrent.futures as c, ctypes, json, multiprocessing as m, os, pty, signal, socket\n"
        "from multiprocessing import shared_memory\n"
        "def double(n):\n    return 2 * n\n"
        "if __name__ == '__main__':\n"
        "    found = []\n"
        "    with c.ThreadPoolExecutor(4) as pool:\n        found.append(sum(pool.map(double, range(10))))\n"
        "    for kind in ('fork', 'spawn', 'forkserver'):\n"
        "        with m.get_context(kind).Pool(2) as pool:\n"
        "            found.append(sum(pool.map(double, range(10))))\n"
        "    block = shared_memory.SharedMemory(create=True, size=99)\n    block.unlink()\n"
        "    found.append(os.write(os.memfd_create('m'), b'abc'))\n"
        "    found.append(len(pty.openpty()))\n"
        "    ours, theirs = socket.socketpair()\n    socket.send_fds(ours, [b'x'], [0])\n"
        "    found.append(len(socket.recv_fds(theirs, 1, 1)[1]))\n"
        "    found.append(ctypes.CDLL(None).semget(0, 250, 0o1600) >= 0)\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        ctypes.CDLL(None).ptrace(0, 0, 0, 0)\n        os.kill(os.getpid(), signal.SIGSTOP)\n"
        "        os._exit(7)\n"
        "    found.append(os.WIFSTOPPED(os.waitpid(child, 0)[1]))\n"
        "    ctypes.CDLL(None).ptrace(7, child, 1, 0)\n"
        "    found.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "    print(json.dumps(found))\n"
    )
    await shared.files.write("usual.py", program)
    shown = (await shared.commands.run("python usual.py", timeout=120)).stdout
    assert json.loads(shown) == [90, 90, 90, 90, 3, 2, 1, True, True, 7]
