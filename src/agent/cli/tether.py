"""Start a program that is asked to end when its starter is gone, however that went: also by SIGKILL.

Run as a script, on its own: `python -I -S tether.py STARTER_PID PROGRAM ARGUMENT…`. It becomes the program,
so that the process id stays the same. Linux only; elsewhere it only starts the program.
"""

import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # prctl(2); kept over execve(2)


def tether(starter: int) -> None:
    """Have the kernel send this process SIGTERM when the thread that started it ends.

    Args:
        starter: process id of the starter; if it has gone already, this process leaves.
    """
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != starter:  # it went before the kernel was asked
        sys.exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    tether(int(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
