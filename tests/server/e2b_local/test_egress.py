"""Which hosts a sandbox reaches, by address and by name, in a small world of the test's own."""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import AsyncIterator, Iterator
from typing import cast

import pytest
from e2b import SandboxException, SandboxNetworkOpts, SandboxNetworkUpdate
from e2b.sandbox.filesystem.filesystem import WriteEntry
from e2b_code_interpreter import AsyncSandbox

from support import small_world
from support.e2b_process import E2BLocal, MakeSandbox
from support.small_world import SmallWorld

pytestmark = pytest.mark.skipif(small_world.missing() is not None, reason=str(small_world.missing()))

ALL = "0.0.0.0/0"
_REACH = """
import concurrent.futures, socket, ssl, sys

def reach(where):
    host, port, *named = where.split("|")
    name = named[0] if named else host
    try:
        with socket.create_connection((host, int(port)), 10) as plain:
            connection = plain
            if port == "443":
                context = ssl.create_default_context(cafile="world.pem")
                connection = context.wrap_socket(plain, server_hostname=name)
            connection.sendall(f"GET / HTTP/1.1\\r\\nHost: {name}\\r\\n\\r\\n".encode())
            return connection.recv(999).decode().rpartition("this is ")[2] or "nothing"
    except OSError:
        return "nothing"

with concurrent.futures.ThreadPoolExecutor(8) as pool:
    print(*pool.map(reach, sys.argv[1:]))
"""


@pytest.fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SmallWorld]:
    """The world this file's sandboxes are in."""
    async with small_world.standing(tmp_path_factory.mktemp("world")) as standing:
        yield standing


@pytest.fixture(scope="module")
def server(world: SmallWorld) -> Iterator[E2BLocal]:
    """A sandbox server in the world."""
    running = world.start_e2b_local()
    yield running
    assert running.stop() == 0


async def _reached(sandbox: AsyncSandbox, world: SmallWorld, *where: str) -> list[str]:
    """Return for each `HOST|PORT` or `HOST|PORT|NAME` the address that answered, or `nothing`."""
    files: list[WriteEntry] = [
        {"path": "r.py", "data": _REACH},
        {"path": "world.pem", "data": world.certificate},
    ]
    await sandbox.files.write_files(files)
    quoted = " ".join(f"'{each}'" for each in where)
    return (await sandbox.commands.run(f"python r.py {quoted}", timeout=60)).stdout.split()


async def test_only_the_names_that_are_allowed(make_sandbox: MakeSandbox, world: SmallWorld) -> None:
    """HTTP and TLS by name; not by another name, to another port, or to an allowed host's bare address."""
    names = ["Shop.Example", "*.shop.example", "inward.example", "missing.example"]
    sandbox = await make_sandbox(network={"allow_out": names, "deny_out": [ALL]})
    asked = {
        "shop.example|80": "198.51.100.1",
        "shop.example|443": "198.51.100.1",
        "api.shop.example|443": "198.51.100.1",
        # Where the name leads counts, not where the program turned to.
        "198.51.100.2|80|shop.example": "198.51.100.1",
        "other.example|80": "nothing",
        "other.example|443": "nothing",
        "198.51.100.1|80": "nothing",
        "198.51.100.1|443|other.example": "nothing",
        "shop.example|8080": "nothing",
        # Allowed, but nowhere to go: it is this machine's loopback, or nothing.
        "inward.example|80": "nothing",
        "127.0.0.1|80|inward.example": "nothing",
        "198.51.100.1|80|missing.example": "nothing",
    }
    assert dict(zip(asked, await _reached(sandbox, world, *asked), strict=True)) == asked
    assert {address for address, _, _ in world.asked} == {"198.51.100.1"}
    assert {name for _, _, name in world.asked} == {"shop.example", "api.shop.example"}


async def test_addresses_on_every_port(make_sandbox: MakeSandbox, world: SmallWorld) -> None:
    """What is allowed wins over what is denied; each update replaces all there was, names too."""
    tried = ["198.51.100.1|8080", "198.51.100.2|8080", "other.example|80"]
    sandbox = await make_sandbox(network={"allow_out": ["198.51.100.1"], "deny_out": [ALL]})
    assert await _reached(sandbox, world, *tried) == ["198.51.100.1", "nothing", "nothing"]
    both: dict[str, object] = {"deny_out": ["198.51.100.0/24"], "allow_internet_access": True}
    for options, reached in (
        ({"allow_out": [ALL]}, "198.51.100.1 198.51.100.2 198.51.100.2"),
        (
            {"allow_out": ["other.example", "198.51.100.1"], "deny_out": [ALL]},
            "198.51.100.1 nothing 198.51.100.2",
        ),
        ({"allow_out": ["198.51.100.0/30"]}, "198.51.100.1 198.51.100.2 nothing"),
        ({"allow_internet_access": False}, "nothing nothing nothing"),
        ({"allow_out": ["other.example"], "deny_out": [ALL]}, "nothing nothing 198.51.100.2"),
        ({**both, "allow_out": ["198.51.100.1"]}, "198.51.100.1 nothing nothing"),
        ({**both, "deny_out": ["198.51.100.1/32"]}, "nothing 198.51.100.2 198.51.100.2"),
    ):
        await sandbox.update_network(cast(SandboxNetworkUpdate, options))
        assert await _reached(sandbox, world, *tried) == reached.split(), options
    await sandbox.update_network({"allow_out": ["shop.example"], "deny_out": [ALL]})
    told = (await sandbox.get_info()).network
    assert told is not None
    assert (told["allow_out"], told["deny_out"]) == (["shop.example"], [ALL])


_HOLD = """
import socket, time
server = socket.create_server(("127.0.0.1", 0))
with socket.create_connection(("198.51.100.1", 8080), 10) as far:
    near = socket.create_connection(server.getsockname())
    taken, _ = server.accept()
    print("connected", flush=True)
    far.settimeout(60)
    try:
        print("ended" if far.recv(1) == b"" else "answered")
    except OSError as exc:
        print(type(exc).__name__)
    near.sendall(b"x")
    print(taken.recv(1).decode())
"""


@pytest.mark.parametrize(
    "options", [{"allow_internet_access": False}, {"allow_out": ["198.51.100.2"], "deny_out": [ALL]}]
)
async def test_rules_that_get_narrower_break_what_is_connected(
    make_sandbox: MakeSandbox, options: dict[str, object]
) -> None:
    """A program is told at once, and waits for no time limit; within the sandbox its connections stay."""
    sandbox = await make_sandbox(network={"allow_out": ["198.51.100.1"], "deny_out": [ALL]})
    await sandbox.files.write("hold.py", _HOLD)
    said: asyncio.Queue[str] = asyncio.Queue()
    command = await sandbox.commands.run("python hold.py", background=True, on_stdout=said.put_nowait)
    assert (await said.get()).startswith("connected")
    await sandbox.update_network(cast(SandboxNetworkUpdate, options))
    result = await command.wait()
    assert result.stdout.split()[1:] in (["ConnectionAbortedError", "x"], ["ConnectionResetError", "x"])


_TRICKS = """
import concurrent.futures, itertools, socket
OPTIONS = {
    "no trick": lambda s: None,
    "SO_BINDTODEVICE": lambda s: s.setsockopt(socket.SOL_SOCKET, 25, DEVICE.encode()),
    "IP_UNICAST_IF": lambda s: s.setsockopt(socket.IPPROTO_IP, 50, INDEX.to_bytes(4, "big")),
    "IPV6_UNICAST_IF": lambda s: s.setsockopt(socket.IPPROTO_IPV6, 76, INDEX.to_bytes(4, "big")),
}
INDEX, DEVICE = max((i, n) for i, n in socket.if_nameindex() if n != "lo")

def attempt(host, trick, kind):
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind) as s:
        s.settimeout(2)
        try:
            OPTIONS[trick](s)
            s.connect((host, 9 if kind == socket.SOCK_DGRAM else 8080))
            s.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
            return f"{host} by {trick}: {s.recv(999)[:8]}"
        except OSError:
            return ""

with socket.socket(type=socket.SOCK_DGRAM) as s:
    try:
        s.connect(("198.51.100.1", 9))
        HOSTS.append(s.getsockname()[0])
    except OSError:
        pass
cases = itertools.product(HOSTS, OPTIONS, (socket.SOCK_DGRAM, socket.SOCK_STREAM))
with concurrent.futures.ThreadPoolExecutor(64) as pool:
    print(*filter(None, pool.map(lambda case: attempt(*case), cases)), sep="\\n")
"""


@pytest.mark.parametrize(
    ("options", "reached"),
    [
        ({"allow_internet_access": True}, {"198.51.100.1", "198.51.100.2"}),
        ({"allow_out": ["198.51.100.1"], "deny_out": [ALL]}, {"198.51.100.1"}),
        ({"deny_out": ["198.51.100.2"], "allow_internet_access": True}, {"198.51.100.1"}),
        ({"allow_out": ["shop.example"], "deny_out": [ALL]}, set()),
    ],
)
async def test_whatever_interface_a_program_chooses(
    options: dict[str, object], reached: set[str], make_sandbox: MakeSandbox, world: SmallWorld
) -> None:
    """Naming the interface leads no further, and the machine is not reached by any address of its own."""
    sandbox = await make_sandbox()
    await sandbox.update_network(cast(SandboxNetworkUpdate, options))
    hosts = ["198.51.100.1", "198.51.100.2", "127.0.0.1", "127.0.0.9", "::1", small_world.GROUP]
    world.asked.clear()
    world.packets.clear()
    await sandbox.files.write("tricks.py", f"HOSTS = {hosts}\n{_TRICKS}")
    shown = (await sandbox.commands.run("python tricks.py", timeout=120)).stdout
    assert {line.split()[0] for line in shown.splitlines() if line} == reached, shown
    arrived = {address for address, *_ in [*world.asked, *world.packets]}
    assert arrived == reached, shown


async def test_the_rules_stay_over_a_pause_and_a_fork(make_sandbox: MakeSandbox, world: SmallWorld) -> None:
    """Paused with memory or without, and in another sandbox made from it."""
    tried = ["shop.example|80", "other.example|80"]
    sandbox = await make_sandbox(network={"allow_out": ["shop.example"], "deny_out": [ALL]})
    for keep_memory in (True, False):
        await sandbox.pause(keep_memory=keep_memory)
        await sandbox.connect()
        assert await _reached(sandbox, world, *tried) == ["198.51.100.1", "nothing"]
    [forked] = await sandbox.fork()
    assert isinstance(forked, AsyncSandbox)
    try:
        assert await _reached(forked, world, *tried) == ["198.51.100.1", "nothing"]
    finally:
        await forked.kill()


async def test_a_connection_that_names_no_host_ends(make_sandbox: MakeSandbox, world: SmallWorld) -> None:
    """It gets nothing; and however many connections one sandbox holds, others go their way."""
    rules: SandboxNetworkOpts = {"allow_out": ["shop.example"], "deny_out": [ALL]}
    sandbox, other = await make_sandbox(network=rules), await make_sandbox(network=rules)
    program = (
        "import socket, time\n"
        "def said(what, close=False):\n"
        "    s = socket.create_connection(('198.51.100.1', 80), 20); s.sendall(what)\n"
        "    if close: s.shutdown(socket.SHUT_WR)\n"
        "    try:\n        return s.recv(10) or 'closed'\n"
        "    except ConnectionError:\n        return 'closed'\n"
        "held = [socket.create_connection(('198.51.100.1', 80), 20) for _ in range(150)]\n"
        "print('held', flush=True); input()\n"
        "for each in held: each.close()\n"
        "print(said(b'\\0' * 100_000), said(b'GET / HTTP/1.1\\r\\n\\r\\n'), said(b'GET', True),\n"
        "      said(b'GET / HTTP/1.1\\r\\nHost: shop.example:80\\r\\n\\r\\n'))\n"
    )
    await sandbox.files.write("p.py", program)
    holds = asyncio.Event()
    running = await sandbox.commands.run(
        "python p.py", background=True, stdin=True, timeout=60, on_stdout=lambda _: holds.set()
    )
    async with asyncio.timeout(30):
        await holds.wait()
    assert await _reached(other, world, "shop.example|443") == ["198.51.100.1"]
    await sandbox.commands.send_stdin(running.pid, "\n")
    assert (await running.wait()).stdout == "held\nclosed closed closed b'HTTP/1.1 2'\n"


async def test_connections_by_name_are_as_direct_ones(
    make_sandbox: MakeSandbox, server: E2BLocal, world: SmallWorld
) -> None:
    """All of a large answer, one that comes before the upload has ended, and an end that is none.

    Hosts and programs that read nothing cost the server nothing once the sandbox ends.
    """
    sandbox = await make_sandbox(network={"allow_out": ["shop.example"], "deny_out": [ALL]})
    before = _open_files(server)
    program = (
        "import socket\n"
        "def ask(path, upload=0, read=True):\n"
        "    s = socket.create_connection(('shop.example', 80), 20)\n"
        "    s.sendall(f'POST {path} HTTP/1.1\\r\\nHost: shop.example\\r\\n\\r\\n'.encode())\n"
        "    s.settimeout(2)\n"
        "    try:\n        s.sendall(bytes(upload))\n    except OSError as exc:\n        pass\n"
        "    if not read: return held.append(s)\n"
        "    said = b''\n"
        "    try:\n"
        "        while piece := s.recv(1 << 16): said += piece\n"
        "        return len(said), 'end', b'this is 198.51.100.1' in said\n"
        "    except OSError as exc:\n"
        "        return len(said), type(exc).__name__, b'this is 198.51.100.1' in said\n"
        "held = []\n"
        "print(ask('/'), ask('/large'), ask('/reset'), ask('/early', 30_000_000)[2])\n"
        "for _ in range(20): ask('/stall', 8_000_000, False) if _ % 10 == 0 else ask('/large', 0, False)\n"
        "print(len(held)); input()\n"
    )
    await sandbox.files.write("p.py", program)
    shown = ""
    complete = asyncio.Event()

    def take(text: str) -> None:
        nonlocal shown
        shown += text
        if shown.endswith("\n20\n"):
            complete.set()

    await sandbox.commands.run("python p.py", background=True, stdin=True, timeout=60, on_stdout=take)
    async with asyncio.timeout(60):
        await complete.wait()
    small = len("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nthis is 198.51.100.1")
    large = small + small_world.LARGE_BYTES
    assert shown == (
        f"({small}, 'end', True) ({large}, 'end', True) ({small}, 'ConnectionResetError', True) True\n20\n"
    )
    assert _open_files(server) > before + 20
    await sandbox.kill()
    async with asyncio.timeout(10):
        while _open_files(server) > before:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def _open_files(server: E2BLocal) -> int:
    return len(list(pathlib.Path(f"/proc/{server.pid}/fd").iterdir()))


async def test_rules_that_cannot_be_kept_are_refused(make_sandbox: MakeSandbox) -> None:
    """With what is wrong with them, and nothing is made."""
    with pytest.raises(SandboxException, match=r"deny 0\.0\.0\.0/0") as caught:
        await make_sandbox(network={"allow_out": ["shop.example"]})
    assert caught.value.status_code == 400
