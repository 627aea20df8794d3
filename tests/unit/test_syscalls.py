"""The seccomp filter as a program, run here on system calls of every machine it knows."""

from __future__ import annotations

import errno
import socket
import struct

import pytest

from e2b_local.syscalls import UnknownMachineError, system_call_filter

ALLOW, KILL = 0x7FFF0000, 0x80000000
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "riscv64": 0xC00000F3}
NUMBERS = {
    # name: on x86-64, in the table that ARM and RISC-V share
    "clone": (56, 220), "clone3": (435, 435), "ioctl": (16, 29), "keyctl": (250, 219), "mount": (165, 40),
    "personality": (135, 92), "ptrace": (101, 117), "semget": (64, 190), "setns": (308, 268),
    "socket": (41, 198), "socketpair": (53, 199), "unshare": (272, 97), "write": (1, 64),
}  # fmt: skip


def _fails(name: str) -> int:
    return 0x00050000 | int(getattr(errno, name))


def _run(program: bytes, number: int, architecture: int, *arguments: int) -> int:
    """Return what the kernel would do: linux/filter.h, as far as this program goes."""
    lines = list(struct.iter_unpack("=HBBI", program))
    padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("=IIQ6Q", number & 0xFFFFFFFF, architecture, 0, *padded)
    place, held = 0, 0
    while True:
        code, then, other, value = lines[place]
        place += 1
        match code:
            case 0x20:
                (held,) = struct.unpack_from("=I", data, value)
            case 0x54:
                held &= value
            case 0x06:
                return int(value)
            case _:
                met = {0x15: held == value, 0x25: held > value, 0x45: bool(held & value)}[code]
                place += then if met else other


def _on(machine: str, name: str, *arguments: int) -> int:
    number = NUMBERS[name][0 if machine == "x86_64" else 1]
    return _run(system_call_filter(machine), number, AUDIT[machine], *arguments)


@pytest.mark.parametrize("machine", AUDIT)
def test_filter_closes_namespaces_and_keeps_threads(machine: str) -> None:
    """Every flag for a new namespace is refused, alone and among others; threads and forks are not."""
    assert _on(machine, "clone", 0x3D0F00) == _on(machine, "clone", 17) == ALLOW  # pthread_create, fork
    assert _on(machine, "unshare", 0x600) == ALLOW  # of files and folders alone
    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        for others in (0, 17, 0x3D0F00):
            assert _on(machine, "clone", flag | others) == _fails("EPERM")
        assert _on(machine, "unshare", flag) == _fails("EPERM")
    assert _on(machine, "unshare", 0x80) == _fails("EPERM")
    assert _on(machine, "clone3") == _fails("ENOSYS")
    assert _on(machine, "setns") == _on(machine, "mount") == _on(machine, "keyctl") == _fails("EPERM")


@pytest.mark.parametrize("machine", AUDIT)
def test_filter_looks_at_the_half_of_an_argument_that_the_kernel_takes(machine: str) -> None:
    """Bits above the 32 that count neither hide a flag nor make one."""
    above = 0xDEAD << 32
    assert _on(machine, "clone", above | 0x10000000) == _fails("EPERM")
    assert _on(machine, "ioctl", 0, above | 0x5412) == _fails("EPERM")
    assert _on(machine, "socket", above | socket.AF_INET, 1, 0) == ALLOW
    assert _on(machine, "socket", above | 40, 1, 0) == _fails("EAFNOSUPPORT")


@pytest.mark.parametrize("machine", AUDIT)
def test_filter_knows_few_sockets(machine: str) -> None:
    """TCP, UDP, ICMP, Unix, and of netlink what tells interfaces; flags do not matter."""
    flags = socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
    for family in range(64):
        made = _on(machine, "socket", family, 1 | flags, 0)
        assert made == (ALLOW if family in (1, 2, 10, 16) else _fails("EAFNOSUPPORT")), family
        paired = _on(machine, "socketpair", family, 1 | flags, 0)
        assert paired == (ALLOW if family == 1 else _fails("EAFNOSUPPORT")), family
    for protocol in range(512):
        made = _on(machine, "socket", 2, 2 | flags, protocol)
        assert made == (ALLOW if protocol in (0, 1, 6, 17, 58) else _fails("EPROTONOSUPPORT")), protocol
        made = _on(machine, "socket", 16, 3 | flags, protocol)
        assert made == (ALLOW if protocol == 0 else _fails("EPROTONOSUPPORT")), protocol
    assert _on(machine, "socket", 10, 5, 0) == _fails("ESOCKTNOSUPPORT")  # what may mean SCTP


@pytest.mark.parametrize("machine", AUDIT)
def test_filter_judges_what_else_has_arguments(machine: str) -> None:
    """Terminals cannot be typed into, memory keeps its random places, and sets of semaphores stay small."""
    for request in (0x5412, 0x541C, 0x5423):
        assert _on(machine, "ioctl", 0, request) == _fails("EPERM")
    assert _on(machine, "ioctl", 0, 0x5413) == ALLOW  # the size of a window
    assert _on(machine, "personality", 0xFFFFFFFF) == _on(machine, "personality", 0) == ALLOW
    assert _on(machine, "personality", 0x0040000) == _fails("EPERM")
    assert _on(machine, "semget", 1, 250) == ALLOW
    assert _on(machine, "semget", 1, 251) == _fails("EINVAL")
    assert _on(machine, "ptrace") == _on(machine, "write") == ALLOW


@pytest.mark.parametrize("machine", AUDIT)
def test_filter_lets_nothing_through_that_it_does_not_know(machine: str) -> None:
    """Calls of another machine's kind end the program; younger ones, and those of x32, are not there."""
    program = system_call_filter(machine)
    for architecture in (0x40000003, 0x40000028, *AUDIT.values(), 0):
        if architecture != AUDIT[machine]:
            assert _run(program, 64, architecture) == KILL
    for number in (470, 1000, 0x40000000 | 41, -1):
        assert _run(program, number, AUDIT[machine]) == _fails("ENOSYS")


@pytest.mark.parametrize("machine", ["i686", "armv7l", "s390x", ""])
def test_filter_refuses_machines_it_has_no_numbers_for(machine: str) -> None:
    """To let all pass there would be a wall that only looks like one."""
    with pytest.raises(UnknownMachineError, match=f"this machine \\({machine}\\)"):
        system_call_filter(machine)
