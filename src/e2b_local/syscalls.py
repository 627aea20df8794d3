"""What the kernel refuses to programs of a box, which no namespace keeps from them: a seccomp filter."""

from __future__ import annotations

import errno
import socket
import struct

# linux/bpf_common.h, linux/seccomp.h
_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _FAIL_WITH = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_X86_64, _AARCH64, _I386 = 0xC000003E, 0xC00000B7, 0x40000003


def without_vsock() -> bytes:
    """Return a program that fails `socket(AF_VSOCK, …)`, by which a virtual machine speaks to its hypervisor.

    What it knows no number for (other architectures) it lets pass. 32-bit x86 programs cannot make sockets by
    `socketcall`, whose arguments a filter cannot see.
    """
    # Each: code, value, and where to go on if equal and if not; places are counted from the next line.
    program = [
        (_LOAD, _ARCHITECTURE, 0, 0),
        (_IF_EQUAL, _X86_64, 0, 3),
        (_LOAD, _NUMBER, 0, 0),
        (_IF_EQUAL, 41, 8, 0),
        (_IF_EQUAL, 0x40000029, 7, 9),  # the same, of the x32 ABI
        (_IF_EQUAL, _AARCH64, 0, 2),
        (_LOAD, _NUMBER, 0, 0),
        (_IF_EQUAL, 198, 4, 6),
        (_IF_EQUAL, _I386, 0, 5),
        (_LOAD, _NUMBER, 0, 0),
        (_IF_EQUAL, 102, 4, 0),  # socketcall
        (_IF_EQUAL, 359, 0, 2),
        (_LOAD, _FIRST_ARGUMENT, 0, 0),
        (_IF_EQUAL, socket.AF_VSOCK, 1, 0),
        (_RETURN, _ALLOW, 0, 0),
        (_RETURN, _FAIL_WITH | errno.EAFNOSUPPORT, 0, 0),
    ]
    return b"".join(struct.pack("=HBBI", code, then, other, value) for code, value, then, other in program)
