"""How fast e2b-local is, each figure beside what one would otherwise do, in one run.

    python bench/e2b_local_speed.py [--rounds 30]

Run it on an idle machine: every figure is a median, and the ratios compare medians of this run only, each
pair taken in turns.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from e2b_code_interpreter import AsyncSandbox, Sandbox
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests"))

from e2b_local.inbox.family import descendants
from support.e2b_process import E2BLocal, start_e2b_local

MB = 1024 * 1024
SETTLE_S = 40  # by then the watch on a sandbox's memory looks as rarely as it ever does


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    manager, client, cold_s = bare_kernel()
    server = start_e2b_local()
    try:
        warm_s = statistics.median(create_run_kill(server) for _ in range(max(5, rounds // 5)))
        with Sandbox.create(**server.options) as sandbox:
            sandbox.run_code("1")
            code_s, bare_s = medians(rounds, lambda: sandbox.run_code("1"), lambda: execute(client))
            command_s, bwrap_s = medians(rounds, lambda: sandbox.commands.run("true"), bare_bwrap)
            client.stop_channels()
            manager.shutdown_kernel(now=True)
            idle = idle_cpu(server)
            memory = transfer(server, sandbox)
        burst_s, failed, burst_mb = asyncio.run(burst(server))
    finally:
        server.stop()
    row("create + run_code('1') + kill, warm", warm_s, "cold kernel + 1", cold_s, "under 100 ms")
    row("run_code('1')", code_s, "bare jupyter_client", bare_s, "within 1.6 x or + 3 ms")
    row("commands.run('true')", command_s, "bare bwrap … true", bwrap_s, "within 2 x")
    print(f"20 creates at once: {burst_s:.2f} s, {failed} failed, server grew by {burst_mb:.0f} MB")
    print(f"100 MB up and down: server grew by {memory:.0f} MB at most")
    print(f"CPU of the server, an idle sandbox and a warm one in 10 s: {idle * 1000:.1f} ms")


def row(what: str, seconds: float, beside: str, other: float, goal: str) -> None:
    ratio = seconds / other
    print(f"{what}: {seconds * 1000:.1f} ms; {beside}: {other * 1000:.1f} ms; {ratio:.2f} x ({goal})")


def medians(rounds: int, *works: Callable[[], object]) -> list[float]:
    """Time each work in turn, so that what else the machine does meets all of them alike."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for work, taken in zip(works, times, strict=True):
            begun = time.perf_counter()
            work()
            taken.append(time.perf_counter() - begun)
    return [statistics.median(taken) for taken in times]


def bare_kernel() -> tuple[KernelManager, BlockingKernelClient, float]:
    """Start a kernel by jupyter_client alone; return it and the time to the end of its first cell."""
    begun = time.perf_counter()
    manager = KernelManager()
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready()
    execute(client)
    return manager, client, time.perf_counter() - begun


def execute(client: BlockingKernelClient) -> None:
    identifier = client.execute("1")
    while True:
        message = client.get_iopub_msg(timeout=60)
        if (
            message["parent_header"].get("msg_id") == identifier
            and message["msg_type"] == "status"
            and message["content"]["execution_state"] == "idle"
        ):
            return


def create_run_kill(server: E2BLocal) -> float:
    while server.warm() == 0:
        time.sleep(0.05)
    begun = time.perf_counter()
    sandbox = Sandbox.create(**server.options)
    sandbox.run_code("1")
    sandbox.kill()
    return time.perf_counter() - begun


def bare_bwrap() -> None:
    command = [
        "bwrap",
        "--unshare-pid",
        "--unshare-net",
        "--unshare-ipc",
        "--unshare-uts",
        "--die-with-parent",
    ]
    command += ["--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib"]
    command += [
        "--symlink",
        "usr/lib64",
        "/lib64",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--tmpfs",
        "/tmp",
        "true",
    ]
    subprocess.run(command, check=True)


async def burst(server: E2BLocal) -> tuple[float, int, float]:
    """Create twenty sandboxes at once, and run a command in each."""
    before = peak_mb(server)

    async def one() -> None:
        sandbox = await AsyncSandbox.create(**server.options)
        try:
            assert (await sandbox.commands.run("echo on")).stdout == "on\n"
        finally:
            await sandbox.kill()

    begun = time.perf_counter()
    results = await asyncio.gather(*(one() for _ in range(20)), return_exceptions=True)
    failed = sum(isinstance(each, BaseException) for each in results)
    return time.perf_counter() - begun, failed, peak_mb(server) - before


def transfer(server: E2BLocal, sandbox: Sandbox) -> float:
    """Move 100 MB each way; return by how much the server's memory grew at its peak."""
    before = peak_mb(server)
    with tempfile.TemporaryFile() as file:
        for _ in range(100):
            file.write(b"x" * MB)
        file.seek(0)
        sandbox.files.write("/tmp/big", io.BufferedReader(file))  # type: ignore[type-var]
    size = sum(len(piece) for piece in sandbox.files.read("/tmp/big", format="stream"))
    assert size == 100 * MB
    return peak_mb(server) - before


def peak_mb(server: E2BLocal) -> float:
    status = pathlib.Path(f"/proc/{server.pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1024


def idle_cpu(server: E2BLocal) -> float:
    """Return the CPU seconds that the server and all its sandboxes use in ten seconds without requests."""
    while server.warm() == 0:
        time.sleep(0.05)
    time.sleep(SETTLE_S)
    before = cpu_s(server)
    time.sleep(10)
    return cpu_s(server) - before


def cpu_s(server: E2BLocal) -> float:
    """Return the CPU seconds so far, to the nanosecond: the usual counters tick in hundredths."""
    total = 0
    for pid in {server.pid, *descendants(server.pid)}:
        for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
            total += int((thread / "schedstat").read_text().split()[0])
    return total / 1e9


if __name__ == "__main__":
    main()
