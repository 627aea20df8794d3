"""What the kernel refuses to programs of a box, which no namespace keeps from them: a seccomp filter.

It closes what no template needs: new namespaces, and with them capabilities over rarely tried parts of the
kernel; mounts, kernel modules, keys, BPF, performance counters, io_uring, sockets beyond the internet's and
Unix's, system calls of another architecture, and every call that is younger than this list.
"""

from __future__ import annotations

import dataclasses
import errno
import platform
import socket
import struct
import sys

# linux/bpf_common.h, linux/seccomp.h
_LOAD, _AND = 0x20, 0x54
_IF_EQUAL, _IF_GREATER, _IF_ANY_BIT, _RETURN = 0x15, 0x25, 0x45, 0x06
_ALLOW, _FAIL_WITH, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _ARCHITECTURE = 0, 4


def _argument(index: int) -> int:
    # The low half of an argument, on machines that put it first: the kernel looks at no more of those below.
    return 16 + 8 * index


@dataclasses.dataclass(frozen=True)
class _Machine:
    audit: int
    """AUDIT_ARCH_* of linux/audit.h."""
    column: int
    """Where its numbers stand in the tables below."""


_MACHINES = {
    "x86_64": _Machine(0xC000003E, 0),
    "aarch64": _Machine(0xC00000B7, 1),
    "riscv64": _Machine(0xC00000F3, 1),
}
# file_setattr, the last of Linux 6.17. A library that finds a younger one missing takes an older one; the
# calls of the x32 ABI lie above it too.
_NEWEST = 469

# Name, and its number on x86-64 and in the table that ARM and RISC-V share; 0 where there is none.
_NOT_PERMITTED = {
    # mounts
    "chroot": (161, 51), "fsconfig": (431, 431), "fsmount": (432, 432), "fsopen": (430, 430),
    "fspick": (433, 433), "mount": (165, 40), "mount_setattr": (442, 442), "move_mount": (429, 429),
    "open_tree": (428, 428), "open_tree_attr": (467, 467), "pivot_root": (155, 41), "umount2": (166, 39),
    # files by a number instead of a path, which no mount hides
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    # namespaces of others
    "setns": (308, 268),
    # memory and files of other programs, beside what a debugger uses (ptrace)
    "kcmp": (312, 272), "pidfd_getfd": (438, 438), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "userfaultfd": (323, 282),
    # what they store is memory of the kernel's own
    "add_key": (248, 217), "bpf": (321, 280), "fanotify_init": (300, 262), "keyctl": (250, 219),
    "perf_event_open": (298, 241), "request_key": (249, 218),
    # the machine
    "acct": (163, 89), "clock_settime": (227, 112), "delete_module": (176, 106), "finit_module": (313, 273),
    "init_module": (175, 105), "ioperm": (173, 0), "iopl": (172, 0), "kexec_file_load": (320, 294),
    "kexec_load": (246, 104), "lookup_dcookie": (212, 18), "modify_ldt": (154, 0), "nfsservctl": (180, 42),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "reboot": (169, 142), "settimeofday": (164, 170),
    "swapoff": (168, 225), "swapon": (167, 224), "syslog": (103, 116), "vhangup": (153, 58),
}  # fmt: skip
_NOT_THERE = {
    # Its flags lie where no filter can see them; every library knows kernels without it and takes clone.
    "clone3": (435, 435),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    # Memory that is kept nowhere to be counted: secret, or of pages that lie in a pipe.
    "memfd_secret": (447, 447), "vmsplice": (316, 75),
}  # fmt: skip
_JUDGED = {
    "clone": (56, 220), "ioctl": (16, 29), "personality": (135, 92), "semget": (64, 190),
    "socket": (41, 198), "socketpair": (53, 199), "unshare": (272, 97),
}  # fmt: skip

# CLONE_NEWNS, -CGROUP, -UTS, -IPC, -USER, -PID, -NET; and -TIME, whose bit means a signal to clone.
_NEW = 0x7E020000
_NEW_TIME = 0x80
# Whatever else there is (SCTP, L2TP, SMC …) would be loaded into the kernel by asking for it.
_PROTOCOLS = (
    0,
    socket.IPPROTO_ICMP,
    socket.IPPROTO_TCP,
    socket.IPPROTO_UDP,
    socket.IPPROTO_ICMPV6,
)
_TYPES = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW)
_TYPE_BITS = 0xF  # the others are flags
_NETLINK_ROUTE = 0
# Typing into a terminal, copying from a console, and line disciplines: old drivers, loaded when asked for.
_TERMINAL = (0x5412, 0x541C, 0x5423)  # TIOCSTI, TIOCLINUX, TIOCSETD
# Linux, 32 bits of it, 2.6 for a version, and the question what it is; not a memory without random places.
_PERSONALITIES = (0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)
# What one set had by default before Linux 3.19; now 32,000, of 64 bytes each that count for nobody.
_MOST_SEMAPHORES = 250
_ERRORS = {
    name: getattr(errno, name)
    for name in ("EAFNOSUPPORT", "EINVAL", "ENOSYS", "EPERM", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT")
}


class UnknownMachineError(Exception):
    """There are no numbers of system calls for this machine."""


def system_call_filter(machine: str = platform.machine()) -> bytes:
    """Return the program for a machine as the kernel names it.

    Raises:
        UnknownMachineError: it is not in the table, or this Python is a 32-bit program on it.
    """
    known = _MACHINES.get(machine)
    if known is None or sys.maxsize < 2**32 or sys.byteorder != "little":
        raise UnknownMachineError(f"no list of system calls for this machine ({machine})")
    return _assembled(_program(known))


_Line = tuple[str, int, int, str, str]
"""A label or "", code, value, and the labels to go on at if true and if not, "" for the next line."""


def _program(machine: _Machine) -> list[_Line]:
    column = machine.column
    lines: list[_Line] = [
        ("", _LOAD, _ARCHITECTURE, "", ""),
        ("", _IF_EQUAL, machine.audit, "", "kill"),
        ("", _LOAD, _NUMBER, "", ""),
        ("", _IF_GREATER, _NEWEST, "ENOSYS", ""),
    ]
    for calls, end in ((_NOT_PERMITTED, "EPERM"), (_NOT_THERE, "ENOSYS"), (_JUDGED, "")):
        for name, numbers in calls.items():
            if numbers[column]:
                lines.append(("", _IF_EQUAL, numbers[column], end or name, ""))
    lines += [
        ("", _RETURN, _ALLOW, "", ""),
        ("clone", _LOAD, _argument(0), "", ""),
        ("", _IF_ANY_BIT, _NEW, "EPERM", "allow"),
        ("unshare", _LOAD, _argument(0), "", ""),
        ("", _IF_ANY_BIT, _NEW | _NEW_TIME, "EPERM", "allow"),
        ("ioctl", _LOAD, _argument(1), "", ""),
        *_one_of(_TERMINAL, "EPERM", "allow"),
        ("personality", _LOAD, _argument(0), "", ""),
        *_one_of(_PERSONALITIES, "allow", "EPERM"),
        ("semget", _LOAD, _argument(1), "", ""),
        ("", _IF_GREATER, _MOST_SEMAPHORES, "EINVAL", "allow"),
        ("socketpair", _LOAD, _argument(0), "", ""),
        ("", _IF_EQUAL, socket.AF_UNIX, "allow", "EAFNOSUPPORT"),
        ("socket", _LOAD, _argument(0), "", ""),
        ("", _IF_EQUAL, socket.AF_UNIX, "allow", ""),
        ("", _IF_EQUAL, socket.AF_NETLINK, "netlink", ""),
        *_one_of((socket.AF_INET, socket.AF_INET6), "internet", "EAFNOSUPPORT"),
        ("netlink", _LOAD, _argument(2), "", ""),
        ("", _IF_EQUAL, _NETLINK_ROUTE, "allow", "EPROTONOSUPPORT"),
        ("internet", _LOAD, _argument(1), "", ""),
        ("", _AND, _TYPE_BITS, "", ""),
        *_one_of(_TYPES, "protocol", "ESOCKTNOSUPPORT"),
        ("protocol", _LOAD, _argument(2), "", ""),
        *_one_of(_PROTOCOLS, "allow", "EPROTONOSUPPORT"),
        ("allow", _RETURN, _ALLOW, "", ""),
        ("kill", _RETURN, _KILL, "", ""),
    ]
    return lines + [(name, _RETURN, _FAIL_WITH | number, "", "") for name, number in _ERRORS.items()]


def _one_of(values: tuple[int, ...], then: str, other: str) -> list[_Line]:
    *first, last = values
    return [*(("", _IF_EQUAL, value, then, "") for value in first), ("", _IF_EQUAL, last, then, other)]


def _assembled(lines: list[_Line]) -> bytes:
    places = {label: place for place, (label, *_) in enumerate(lines) if label}

    def ahead(place: int, label: str) -> int:
        return places[label] - place - 1 if label else 0

    return b"".join(
        # Places are counted from the next line, and only forwards.
        struct.pack("=HBBI", code, ahead(place, then), ahead(place, other), value)
        for place, (_, code, value, then, other) in enumerate(lines)
    )
