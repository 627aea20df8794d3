"""Two networks of the test's own: a machine for sandboxes, and an internet with a few hosts around it."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import dataclasses
import os
import pathlib
import re
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import cast

from support.e2b_process import E2BLocal, isolation_missing, start_e2b_local

HOSTS = {
    "shop.example": "198.51.100.1",
    "api.shop.example": "198.51.100.1",
    "other.example": "198.51.100.2",
    "inward.example": "127.0.0.1",
}
"""Every name there is, and the address it leads to; each host answers on ports 80, 443, 8080 and UDP port 9.

The last one leads to the loopback of the machine, which answers too.
"""
GROUP = "224.0.0.251"
"""A multicast address that the machine listens to, on UDP port 9."""
LARGE_BYTES = 20_000_000
"""What follows the answer to `/large`.

`/stall` is never closed, `/early` is closed unread after its answer, `/reset` is broken off.
"""
# In a process of its own: the library runs an event loop.
_SET_UP = """
import socket, sys, time
from pyroute2 import IPRoute

with IPRoute() as kernel:
    loopback = kernel.link_lookup(ifname="lo")[0]
    kernel.link("set", index=loopback, state="up")
    for address in sys.argv[1:]:
        kernel.addr("add", index=loopback, address=address, prefixlen=32)
    for _ in range(1000):
        if list(kernel.get_default_routes(family=socket.AF_INET)):
            raise SystemExit
        time.sleep(0.02)
raise SystemExit("no default route")
"""
_PASTA = "pasta --foreground --quiet --runas 0:0 --config-net --no-map-gw -u none -T none -U none"


def missing() -> str | None:
    """Say what this machine lacks to build the world, or None."""
    if os.geteuid() != 0:
        return "only root builds a network"
    if shutil.which("pasta") is None or not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "pasta (passt) is not installed or may not use /dev/net/tun"
    return isolation_missing()


class _Network:
    """A network namespace, which ends with the stack it was made on; `pasta` leads out of it.

    Args:
        stack: what ends it.
        port: what listens here on its loopback is reached on the loopback of the network it was made in.
    """

    def __init__(self, stack: contextlib.ExitStack, port: int) -> None:
        holder = subprocess.Popen(["unshare", "--net", "sleep", "600"])
        stack.callback(holder.wait)
        stack.callback(holder.kill)
        self._network = _network_of(holder.pid)
        stack.callback(os.close, self._network)
        command = [*_PASTA.split(), "-t", f"127.0.0.1/{port}", "--netns", f"/proc/self/fd/{self._network}"]
        way_out = subprocess.Popen(command, pass_fds=[self._network], stderr=subprocess.DEVNULL)
        stack.callback(way_out.wait)
        stack.callback(way_out.kill)

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Have this thread, with the sockets it opens and the programs it starts, be there."""
        here = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            _enter(self._network)
            yield
        finally:
            _enter(here)
            os.close(here)


@dataclasses.dataclass
class SmallWorld:
    """The world while it stands."""

    certificate: bytes
    """Of its hosts, which they show on port 443."""
    asked: list[tuple[str, int, str]]
    """Address, port and the host named in each request that arrived at a host or the machine."""
    packets: list[tuple[str, bytes]]
    """Address and content of each packet that arrived at UDP port 9."""
    _machine: _Network
    _port: int

    def start_e2b_local(self, *arguments: str) -> E2BLocal:
        """Start a sandbox server on the machine, which can be reached from here."""
        with self._machine.inside():
            return start_e2b_local("--pool", "0", "--port", str(self._port), *arguments)


@contextlib.asynccontextmanager
async def standing(folder: pathlib.Path) -> AsyncIterator[SmallWorld]:
    """Build the world, with a folder for the files it needs, and take it down again."""
    certificate = folder / "world.pem"
    await _certify(certificate)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with contextlib.ExitStack() as stack:
        internet = _Network(stack, port)
        name_server = _name_server()
        with internet.inside():
            hosts = sorted(set(HOSTS.values()) - {"127.0.0.1"})
            await _set_up(*hosts, *{name_server} - {"127.0.0.1"})
            machine = _Network(stack, port)
        world = SmallWorld(certificate.read_bytes(), [], [], machine, port)
        with internet.inside():
            await _serve(world, certificate, stack, hosts)
            loop = asyncio.get_running_loop()
            names, _ = await loop.create_datagram_endpoint(_Names, (name_server, 53))
            stack.callback(names.close)
        with machine.inside():
            await _set_up()
            await _serve(world, certificate, stack, ["0.0.0.0", "::1"])
        yield world


async def _certify(certificate: pathlib.Path) -> None:
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=world"]
    command += ["-addext", f"subjectAltName={','.join(f'DNS:{name}' for name in HOSTS)}"]
    command += ["-keyout", str(certificate.with_suffix(".key")), "-out", str(certificate)]
    await _run(*command)


async def _set_up(*addresses: str) -> None:
    await _run(sys.executable, "-c", _SET_UP, *addresses)


async def _serve(
    world: SmallWorld, certificate: pathlib.Path, stack: contextlib.ExitStack, addresses: list[str]
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            request = await reader.readuntil(b"\r\n\r\n")
            named = re.search(rb"host: *(\S+)", request, re.IGNORECASE)
            address, port = writer.get_extra_info("sockname")[:2]
            world.asked.append((address, port, named[1].decode() if named else ""))
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + f"this is {address}".encode())
            await writer.drain()
            if b" /stall " in request:
                await over.wait()
            if b" /early " in request:
                await asyncio.sleep(0.3)  # after what was said has arrived
            if b" /large " in request:
                writer.write(bytes(LARGE_BYTES))
                await writer.drain()
            if b" /reset " in request:
                await asyncio.sleep(0.3)
                reset = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        writer.close()

    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    stack.callback(over.set)
    for address in addresses:
        for port in (80, 443, 8080):
            serving = await asyncio.start_server(answer, address, port, ssl=context if port == 443 else None)
            stack.callback(serving.close)
        packets, _ = await loop.create_datagram_endpoint(lambda: _Packets(world.packets), (address, 9))
        stack.callback(packets.close)
        if address == "0.0.0.0":
            joined = socket.inet_aton(GROUP) + socket.inet_aton(address)
            listening = packets.get_extra_info("socket")
            listening.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, joined)


class _Packets(asyncio.DatagramProtocol):
    """Notes what comes and answers it."""

    def __init__(self, packets: list[tuple[str, bytes]]) -> None:
        self._packets = packets

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._packets.append((self._transport.get_extra_info("sockname")[0], data))
        self._transport.sendto(data, addr)


class _Names(asyncio.DatagramProtocol):
    """Answers what the address of a name is: the world's own for its names, else that there is none."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        labels, place = [], 12
        while size := data[place]:
            labels.append(data[place + 1 : place + 1 + size].decode())
            place += 1 + size
        question, kind = data[12 : place + 5], data[place + 1 : place + 3]
        address = HOSTS.get(".".join(labels))
        # An answer; "no such name" where there is none, and nothing of another kind than an IPv4 address.
        found = address is not None and kind == b"\0\1"
        flags = b"\x81\x80" if address else b"\x81\x83"
        head = data[:2] + flags + b"\0\1" + (b"\0\1" if found else b"\0\0") + b"\0\0\0\0"
        record = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(address) if address and found else b""
        self._transport.sendto(head + question + record, addr)


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    _, said = await process.communicate()
    assert process.returncode == 0, said.decode()


def _network_of(pid: int) -> int:
    """Open the network of a process that is about to have one of its own."""
    mine = pathlib.Path("/proc/thread-self/ns/net").stat().st_ino
    for _ in range(500):
        opened = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        if os.fstat(opened).st_ino != mine:
            return opened
        os.close(opened)
        time.sleep(0.01)
    raise AssertionError("unshare made no network")


def _enter(network: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(network, 0) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def _name_server() -> str:
    text = pathlib.Path("/etc/resolv.conf").read_text()
    found = re.search(r"^nameserver\s+(\d+\.\d+\.\d+\.\d+)\s*$", text, re.MULTILINE)
    return found[1] if found else "127.0.0.1"
