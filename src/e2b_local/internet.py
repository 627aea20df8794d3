"""The way out of a box, where a sandbox may use the internet: a `pasta` process attached to its network."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import socket
import sys
from collections.abc import Iterator

from e2b_local.agent_client import AgentClient, BoxGoneError
from e2b_local.egress import Egress
from e2b_local.errors import ApiError
from e2b_local.named_hosts import NamedHosts
from e2b_local.state import note_process

# Where a box asks for names; pasta passes it on to the host's own server.
NAME_SERVER = "169.254.1.1"
_ATTACH_TIMEOUT_S = 10.0
_PROBE_S = 0.02
NS_GET_USERNS = 0xB701  # linux/nsfs.h
# Not imported: it brings a library that only the program itself needs.
_RULER = "e2b_local.routes"
_MOST_SOCKETS = 2
_WITH_SERVER = ["setpriv", "--pdeathsig", "KILL"]
# The program mostly computes: more of them at once would only wait for each other, past their time.
_AT_ONCE = asyncio.Semaphore(os.cpu_count() or 1)
# By default pasta leads the box to the host's loopback twice: by the gateway's address, and by forwarding the
# ports that either side opens. All of it is off.
_OPTIONS = ["--config-net", "--no-map-gw", "-t", "none", "-u", "none", "-T", "none", "-U", "none"]


def installed() -> bool:
    """Whether boxes can be given a way out here."""
    return shutil.which("pasta") is not None


class Internet:
    """A box's way out, while it is open."""

    def __init__(self, init_pid: int, agent: AgentClient, state_dir: pathlib.Path) -> None:
        # Held from the start, while the number can mean no other process.
        self._network = os.open(f"/proc/{init_pid}/ns/net", os.O_RDONLY)
        self._agent = agent
        self._state_dir = state_dir
        self._process: asyncio.subprocess.Process | None = None
        self._egress: Egress | None = None
        self._hosts: NamedHosts | None = None

    async def open(self, egress: Egress) -> None:
        """Attach and wait until the box has a route; does nothing when this much is open.

        Raises:
            ApiError: 500, it could not be attached; nothing is open then.
            BoxGoneError: the box has ended.
        """
        if self._process is not None and self._process.returncode is None and self._egress == egress:
            return
        await self.close()
        try:
            # Before there is anywhere to go: what is denied is never open, not for a moment.
            await self._lay(egress)
            await self._attach(ipv4_only=egress.ruled)
        except BaseException:
            await self.close()
            raise
        self._egress = egress

    async def shut(self) -> None:
        """Take the way out away, and break what is connected by it; does nothing where none is open.

        Raises:
            ApiError: 500, connections could not be broken; they get no further all the same.
            BoxGoneError: the box has ended.
        """
        if self._process is not None:
            await self.close()
            await self._lay(Egress())
            await self.close()

    async def end(self) -> None:
        """Close it for good, when the box has ended."""
        network, self._network = self._network, -1
        os.close(network)
        await self.close()

    async def close(self) -> None:
        """Take the way out away; connections in use get no further."""
        process, self._process = self._process, None
        hosts, self._hosts = self._hosts, None
        if hosts is not None:
            await hosts.close()
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()

    async def _lay(self, egress: Egress) -> None:
        """Lay the rules into the box's network, in the place of those that lie there."""
        rules = {
            "name_server": f"{NAME_SERVER}/32",
            # Where nothing but addresses is allowed, there is no use for names.
            "ask": bool(egress.names or egress.rest),
            "names": bool(egress.names),
            "open": egress.allowed,
            "shut": egress.denied,
            "rest": egress.rest,
            "six": not egress.ruled,
        }
        ours, theirs = socket.socketpair()
        with ours, theirs, self._namespaces() as opened:
            descriptors = [opened[0], theirs.fileno(), *opened[1:]]
            # -P: this server's working folder is no place to import from.
            command = [*_WITH_SERVER, sys.executable, "-P", "-m", _RULER, *map(str, descriptors)]
            async with _AT_ONCE:
                await _run(command, descriptors, json.dumps(rules))
            ours.setblocking(False)
            _, descriptors, _, _ = socket.recv_fds(ours, 16, _MOST_SOCKETS)
        self._hosts = NamedHosts(egress)
        self._hosts.open([socket.socket(fileno=each) for each in descriptors])

    @contextlib.contextmanager
    def _namespaces(self) -> Iterator[list[int]]:
        """Open the box's network and, for an ordinary user, the user namespace that owns it.

        They are handed over open: a program that becomes another user may not look this box up in /proc.

        Raises:
            BoxGoneError: the box has ended.
        """
        if self._network < 0:
            raise BoxGoneError
        opened = [os.dup(self._network)]
        try:
            if os.geteuid() != 0:
                # Not the user namespace of the box's processes: bwrap made theirs within the network's owner.
                opened.append(fcntl.ioctl(opened[0], NS_GET_USERNS))
            yield opened
        finally:
            for descriptor in opened:
                os.close(descriptor)

    async def _attach(self, *, ipv4_only: bool) -> None:
        """Start `pasta` on the box's network and wait for the route it makes."""
        command = [*_WITH_SERVER, "pasta", "--foreground", "--quiet", *_OPTIONS]
        command += ["--dns-forward", NAME_SERVER]
        command += ["--ipv4-only"] if ipv4_only else []
        with self._namespaces() as opened:
            command += ["--netns", f"/proc/self/fd/{opened[0]}"]
            command += [f"--userns=/proc/self/fd/{each}" for each in opened[1:]] or ["--runas", "0:0"]
            self._process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=opened,
            )
        note_process(self._state_dir, self._process.pid)
        route = False
        try:
            async with asyncio.timeout(_ATTACH_TIMEOUT_S):
                # The kernel tells nobody outside when the route is there.
                while self._process.returncode is None and not route:
                    await asyncio.sleep(_PROBE_S)
                    route = bool((await self._agent.call("network"))["route"])
        except TimeoutError:
            self._process.kill()
        if self._process.returncode is not None or not route:
            raise ApiError(
                500, "the sandbox has no way to the internet: pasta failed (may it use /dev/net/tun?)"
            )


async def _run(command: list[str], descriptors: list[int], given: str) -> None:
    """Run the program that lays the rules.

    Raises:
        ApiError: 500, it failed; what it says is in the message.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        pass_fds=descriptors,
    )
    said = b"it took too long"
    try:
        async with asyncio.timeout(_ATTACH_TIMEOUT_S):
            _, said = await process.communicate(given.encode())
    except TimeoutError:
        pass
    finally:
        if process.returncode is None:
            process.kill()
            await asyncio.shield(process.wait())
    if process.returncode != 0:
        why = said.decode(errors="replace").strip().rpartition("\n")[2] or f"exit code {process.returncode}"
        raise ApiError(500, f"the rules for the sandbox's internet could not be laid ({why})")
