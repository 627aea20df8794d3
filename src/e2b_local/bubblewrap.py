"""Boxes under bubblewrap: own pid, mount, ipc, uts and network namespaces, and no privileges."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import itertools
import json
import logging
import os
import pathlib
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys

from e2b_local import mount_limits
from e2b_local.agent_client import AgentClient, BoxGoneError
from e2b_local.box import INBOX, Box, BoxStartError, await_ready
from e2b_local.cgroups import Cgroups, Group, GroupLimits
from e2b_local.config import Limits
from e2b_local.egress import Egress
from e2b_local.errors import ApiError
from e2b_local.internet import NS_GET_USERNS, Internet, installed
from e2b_local.mounts import INBOX_PARENT, RUN_DIR, Mounts
from e2b_local.syscalls import UnknownMachineError, system_call_filter
from e2b_local.template import CPU_COUNT, HOME, Template

_log = logging.getLogger(__name__)
_MB = 1024 * 1024
# Above the users of a system, below the ranges of containers and of systemd's dynamic users; and within the
# 65,536 ids that a container which itself has a user namespace usually gets.
_UIDS = range(20_000, 60_000)
_MOUNT_LIMITS = pathlib.Path(mount_limits.__file__)


class BubblewrapBox:
    """A process tree in its own namespaces; process 1 is the agent."""

    def __init__(
        self,
        monitor: asyncio.subprocess.Process,
        init_pid: int,
        socket_path: pathlib.Path,
        stderr: asyncio.Task[None],
        group: Group,
        most_bytes: int,
    ) -> None:
        self.agent = AgentClient(socket_path)
        self.ended = asyncio.Event()
        self.most_bytes: int | None = most_bytes
        self._monitor = monitor
        # A descriptor, not a number: it can never mean another process.
        self._init = os.pidfd_open(init_pid)
        self._socket_path = socket_path
        self._stderr = stderr
        self._group = group
        self._internet = Internet(init_pid, self.agent, socket_path.parent)
        self._watch = asyncio.create_task(self._wait())

    async def freeze(self) -> None:
        """Have the agent stop every other process.

        The agent itself is not stopped: idle it uses no CPU, and it ends the box when this server is killed,
        which no parent-death signal does here, since bwrap has no right to signal another user's process.
        """
        with contextlib.suppress(BoxGoneError):
            await self.agent.call("freeze")

    async def thaw(self) -> None:
        """Have the agent continue every other process."""
        with contextlib.suppress(BoxGoneError):
            await self.agent.call("thaw")

    async def set_internet(self, egress: Egress | None) -> None:
        """Attach `pasta` to the box's network, or take it away."""
        if egress is None:
            await self._internet.shut()
        elif not installed():
            raise ApiError(400, "internet access needs pasta on the server: apt-get install passt")
        else:
            await self._internet.open(egress)

    async def kill(self) -> None:
        """Kill process 1: the kernel kills the rest of its namespace with it."""
        self._signal(signal.SIGKILL)
        await self.ended.wait()

    def _signal(self, number: signal.Signals) -> None:
        if not self.ended.is_set():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._init, number)

    async def _wait(self) -> None:
        await self._monitor.wait()
        self.ended.set()
        os.close(self._init)
        self._stderr.cancel()
        await self._internet.end()
        self._socket_path.unlink(missing_ok=True)
        await self._group.remove()


class BubblewrapLauncher:
    """Starts boxes under `bwrap`, as root with one unprivileged user id each, else in a user namespace."""

    def __init__(self, template: Template, state_dir: pathlib.Path, limits: Limits) -> None:
        self._template = template
        self._state_dir = state_dir
        self._limits = limits
        self._root = os.geteuid() == 0
        self._numbers = itertools.count(1)
        self._uids = _free_uids() if self._root else itertools.repeat(1000)
        self._mounts = Mounts(template, state_dir, limits)
        self._cgroups = Cgroups(state_dir, [])
        self._filter = b""

    def prepare(self) -> None:
        """Write the files every box shares.

        Raises:
            BoxStartError: bubblewrap is missing or not allowed to make namespaces here.
        """
        if shutil.which("bwrap") is None:
            raise BoxStartError("bubblewrap is not installed")
        if self._root and shutil.which("setpriv") is None:
            raise BoxStartError("setpriv (util-linux) is not installed")
        try:
            self._filter = system_call_filter()
        except UnknownMachineError as exc:
            raise BoxStartError(str(exc)) from exc
        self._mounts.prepare()
        probe = [
            "bwrap",
            "--ro-bind",
            "/",
            "/",
            "--unshare-pid",
            "--unshare-net",
            "--proc",
            "/proc",
            "/bin/true",
        ]
        result = subprocess.run(probe, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise BoxStartError(f"bubblewrap cannot make namespaces here ({result.stderr.strip()})")
        # Files count too: were they not allowed for, a full disk would kill programs. How much programs may
        # use by themselves is for the agent to watch; this holds while it does not look.
        total = self._limits.memory_mb * _MB + self._mounts.writable_bytes
        # Two more: bwrap itself, which waits outside, and the shell that becomes it.
        wanted = GroupLimits(total, self._limits.processes + 2, CPU_COUNT)
        self._cgroups = Cgroups.find(self._state_dir, wanted)
        held = ", ".join(sorted(self._cgroups.holds))
        _log.info("limits: %s", f"control groups ({held}), rlimits, watch" if held else "rlimits, watch")

    async def launch(self) -> Box:
        """Start a box and wait for its agent."""
        number = next(self._numbers)
        uid = next(self._uids)
        socket_path = self._state_dir / f"{number}.sock"
        own = self._mounts.own_files(number, uid)
        group = self._cgroups.make(number)
        # The socket's name lies in a folder only the server can write: no box can put another in its place.
        listener = socket.socket(socket.AF_UNIX)
        info_read, info_write = os.pipe()
        filter_read, filter_write = os.pipe()
        os.write(filter_write, self._filter)  # short enough for any pipe
        os.close(filter_write)
        monitor: asyncio.subprocess.Process | None = None
        try:
            listener.bind(str(socket_path))
            listener.listen(128)
            options = ["--info-fd", str(info_write), "--seccomp", str(filter_read)]
            command = self._command(uid, listener.fileno(), options, own)
            monitor = await asyncio.create_subprocess_exec(
                *group.entering(command),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=(listener.fileno(), info_write, filter_read),
                env={"PATH": os.defpath},
            )
            os.close(info_write)
            info_write = -1
            await await_ready(monitor)
            # bwrap writes this before the mounts exist: read only now that the program inside has spoken.
            init_pid = int(json.loads(os.read(info_read, 4096))["child-pid"])
            # Nothing of a user's runs in it yet.
            await self._limit_files(init_pid)
        except BaseException as exc:
            socket_path.unlink(missing_ok=True)
            if monitor is not None and monitor.returncode is None:
                # An agent that is up ends with its input; what came before it dies with the monitor.
                assert monitor.stdin is not None
                monitor.stdin.close()
                monitor.kill()
                await asyncio.shield(monitor.wait())
            await asyncio.shield(group.remove())
            if isinstance(exc, OSError):
                raise BoxStartError(str(exc)) from exc
            raise
        finally:
            listener.close()
            os.close(info_read)
            os.close(filter_read)
            if info_write >= 0:
                os.close(info_write)
            for path in own:
                path.unlink(missing_ok=True)
        said = asyncio.create_task(_drain(monitor, number))
        # An archive repeats names and attributes, which are up to half of what files cost.
        most_bytes = 2 * self._mounts.writable_bytes
        return BubblewrapBox(monitor, init_pid, socket_path, said, group, most_bytes)

    async def _limit_files(self, init_pid: int) -> None:
        """Bound the number of files in the filesystems of a box.

        Raises:
            BoxStartError: they could not be bounded.
        """
        opened = [os.open(f"/proc/{init_pid}/ns/mnt", os.O_RDONLY)]
        try:
            if not self._root:
                # Not the user namespace of the box's processes: bwrap made theirs within the mounts' owner.
                opened.insert(0, fcntl.ioctl(opened[0], NS_GET_USERNS))
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(_MOUNT_LIMITS)),
                *(",".join(map(str, opened)), *self._mounts.limited),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=opened,
            )
        finally:
            for descriptor in opened:
                os.close(descriptor)
        try:
            _, said = await process.communicate()
        except BaseException:
            process.kill()
            await asyncio.shield(process.wait())
            raise
        if process.returncode != 0:
            raise BoxStartError(f"its files cannot be limited: {said.decode(errors='replace').strip()}")

    def _command(
        self, uid: int, listen_fd: int, options: list[str], own: tuple[pathlib.Path, ...]
    ) -> list[str]:
        command = ["bwrap", "--die-with-parent", "--as-pid-1", "--new-session", *options]
        command += [
            "--unshare-pid",
            "--unshare-net",
            "--unshare-ipc",
            "--unshare-uts",
            "--unshare-cgroup-try",
        ]
        command += ["--hostname", "e2b.local"]
        if not self._root:
            command += ["--unshare-user", "--disable-userns", "--uid", str(uid), "--gid", str(uid)]
        command += self._mounts.options(own)
        command += ["--clearenv", "--chdir", HOME]
        variables = self._template.environment(HOME) | {"MPLCONFIGDIR": f"{RUN_DIR}/matplotlib"}
        for name, value in variables.items():
            command += ["--setenv", name, value]
        agent = [str(self._template.python), "-I", "-S", "-c", _BOOT, "--listen-fd", str(listen_fd)]
        agent += [word for path in self._mounts.kept for word in ("--keep", path)]
        agent += ["--home", HOME, "--run", RUN_DIR, "--memory-mb", str(self._limits.memory_mb)]
        # Where the kernel holds a sandbox's memory too, the watch may look less often while nothing happens.
        agent += ["--lazy-watch"] if "memory" in self._cgroups.holds else []
        agent += ["--processes", str(self._limits.processes), "--cpu-s", str(self._limits.cpu_s)]
        if not self._root:
            return [*command, "--", *agent]
        # Made by root, these folders must become the user's before root's powers are given up for good.
        drop = (
            f"chown {uid}:{uid} {HOME} {RUN_DIR} && exec setpriv --reuid {uid} --regid {uid} --clear-groups "
        )
        drop += '--bounding-set=-all --inh-caps=-all --no-new-privs "$@"'
        return [*command, "--", "/bin/sh", "-c", drop, "sh", *agent]


# -I keeps the current folder and PYTHON* variables out of the agent; its own package is put on the path here.
_BOOT = (
    f"import sys; sys.path.insert(0, {INBOX_PARENT!r}); import runpy; "
    f"sys.argv[0] = {INBOX.name!r}; runpy.run_module({INBOX.name!r}, run_name='__main__')"
)


def _free_uids() -> itertools.cycle[int]:
    # A random start: two servers on one machine should not share a user's process quota.
    used = {account.pw_uid for account in pwd.getpwall()}
    free = [uid for uid in _UIDS if uid not in used]
    start = random.randrange(len(free))
    return itertools.cycle(free[start:] + free[:start])


async def _drain(monitor: asyncio.subprocess.Process, number: int) -> None:
    # What comes out here was written by programs of the sandbox: shown only as a quoted, shortened line.
    assert monitor.stderr is not None
    with contextlib.suppress(asyncio.CancelledError, ValueError):
        while piece := await monitor.stderr.read(4096):
            _log.debug("box %d says %r", number, piece[:500])
