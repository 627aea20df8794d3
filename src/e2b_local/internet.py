"""The way out of a box, where a sandbox may use the internet: a `pasta` process attached to its network."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pathlib
import shutil
from typing import Any

from e2b_local.agent_client import AgentClient
from e2b_local.errors import ApiError
from e2b_local.state import note_process

# Where a box asks for names; pasta passes it on to the host's own server.
NAME_SERVER = "169.254.1.1"
INGRESS = frozenset({"allowPublicTraffic", "maskRequestHost"})
"""Options for traffic into a sandbox, which an update leaves alone."""
EGRESS = frozenset({"allowOut", "denyOut"})
_EVERYWHERE = frozenset({"0.0.0.0/0", "::/0"})
_ATTACH_TIMEOUT_S = 10.0
_PROBE_S = 0.02
_NS_GET_USERNS = 0xB701  # linux/nsfs.h
# By default pasta leads the box to the host's loopback twice: by the gateway's address, and by forwarding the
# ports that either side opens. All of it is off.
_OPTIONS = ["--config-net", "--no-map-gw", "-t", "none", "-u", "none", "-T", "none", "-U", "none"]


def installed() -> bool:
    """Whether boxes can be given a way out here."""
    return shutil.which("pasta") is not None


class Internet:
    """A box's way out, while it is open."""

    def __init__(self, init_pid: int, agent: AgentClient, state_dir: pathlib.Path) -> None:
        self._init_pid = init_pid
        self._agent = agent
        self._state_dir = state_dir
        self._process: asyncio.subprocess.Process | None = None

    async def open(self) -> None:
        """Attach and wait until the box has a route; does nothing when open.

        Raises:
            ApiError: 500, it could not be attached.
        """
        if self._process is not None and self._process.returncode is None:
            return
        command = ["setpriv", "--pdeathsig", "KILL", "pasta", "--foreground", "--quiet", *_OPTIONS]
        command += ["--dns-forward", NAME_SERVER]
        # Namespaces are handed over open: a name in /proc could mean another process by now, and the user
        # that pasta becomes may not look this box up there.
        network = os.open(f"/proc/{self._init_pid}/ns/net", os.O_RDONLY)
        opened = [network]
        command += ["--netns", f"/proc/self/fd/{network}"]
        if os.geteuid() == 0:
            command += ["--runas", "0:0"]
        else:
            # Not the user namespace of the box's processes: bwrap made theirs within the network's owner.
            owner = fcntl.ioctl(network, _NS_GET_USERNS)
            opened.append(owner)
            command += ["--userns", f"/proc/self/fd/{owner}"]
        self._process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=opened,
        )
        for descriptor in opened:
            os.close(descriptor)
        note_process(self._state_dir, self._process.pid)
        try:
            async with asyncio.timeout(_ATTACH_TIMEOUT_S):
                # The kernel tells nobody outside when the route is there.
                while self._process.returncode is None and not (await self._agent.call("network"))["route"]:  # noqa: ASYNC110
                    await asyncio.sleep(_PROBE_S)
        except TimeoutError:
            await self.close()
        if self._process is None or self._process.returncode is not None:
            raise ApiError(
                500, "the sandbox has no way to the internet: pasta failed (may it use /dev/net/tun?)"
            )

    async def close(self) -> None:
        """Take the way out away; connections in use break."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()


def wanted(body: dict[str, Any], given: bool | None) -> bool | None:
    """Return whether a request's network options ask for the internet: None if they say nothing of it.

    Args:
        body: the network options as the SDK sends them.
        given: allow_internet_access, or None.

    Raises:
        ApiError: 400 for options that cannot be kept here. To ignore them would open what the caller closed.
    """
    allowed, denied = set(body.get("allowOut") or ()), set(body.get("denyOut") or ())
    if unknown := {key for key in body if body[key]} - INGRESS - EGRESS - {"allow_internet_access"}:
        raise ApiError(400, f"e2b-local has no network options {', '.join(sorted(unknown))}")
    if denied and denied <= _EVERYWHERE and not allowed:
        return False
    if denied or (allowed and not allowed <= _EVERYWHERE):
        raise ApiError(
            400, "e2b-local cannot allow or deny single addresses: the internet is allowed or it is not"
        )
    return True if allowed else given
