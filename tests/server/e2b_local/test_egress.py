"""Which hosts a sandbox reaches, by address and by name, in a small world of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import cast

import pytest
from e2b import SandboxException, SandboxNetworkUpdate
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
    assert {name for _, _, name in world.asked} <= {"shop.example", "api.shop.example"}


async def test_addresses_on_every_port(make_sandbox: MakeSandbox, world: SmallWorld) -> None:
    """What is allowed wins over what is denied; each update replaces all there was, names too."""
    tried = ["198.51.100.1|8080", "198.51.100.2|8080", "other.example|80"]
    sandbox = await make_sandbox(network={"allow_out": ["198.51.100.1"], "deny_out": [ALL]})
    assert await _reached(sandbox, world, *tried) == ["198.51.100.1", "nothing", "nothing"]
    both: dict[str, object] = {"deny_out": ["198.51.100.0/24"], "allow_internet_access": True}
    for options, reached in (
        ({"allow_internet_access": True}, "198.51.100.1 198.51.100.2 198.51.100.2"),
        (
            {"allow_out": ["other.example", "198.51.100.1"], "deny_out": [ALL]},
            "198.51.100.1 nothing 198.51.100.2",
        ),
        ({"allow_out": ["198.51.100.0/30"]}, "198.51.100.1 198.51.100.2 nothing"),
        ({"allow_internet_access": False}, "nothing nothing nothing"),
        ({"allow_out": ["other.example"], "deny_out": [ALL]}, "nothing nothing 198.51.100.2"),
        (both, "nothing nothing nothing"),
        ({**both, "allow_out": ["198.51.100.1"]}, "198.51.100.1 nothing nothing"),
        ({**both, "deny_out": ["198.51.100.1/32"]}, "nothing 198.51.100.2 198.51.100.2"),
        ({"deny_out": ["198.51.100.1"]}, "nothing nothing nothing"),
        ({"allow_out": [ALL], "deny_out": [ALL]}, "198.51.100.1 198.51.100.2 198.51.100.2"),
    ):
        await sandbox.update_network(cast(SandboxNetworkUpdate, options))
        assert await _reached(sandbox, world, *tried) == reached.split(), options
    await sandbox.update_network({"allow_out": ["shop.example"], "deny_out": [ALL]})
    told = (await sandbox.get_info()).network
    assert told is not None
    assert (told["allow_out"], told["deny_out"]) == (["shop.example"], [ALL])


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


async def test_a_connection_that_names_no_host_ends(make_sandbox: MakeSandbox) -> None:
    """Programs that name no host get nothing, and however many connections one opens, the server lives on."""
    sandbox = await make_sandbox(network={"allow_out": ["shop.example"], "deny_out": [ALL]})
    program = (
        "import socket\n"
        "def said(what, close=False):\n"
        "    s = socket.create_connection(('198.51.100.1', 80), 20); s.sendall(what)\n"
        "    if close: s.shutdown(socket.SHUT_WR)\n"
        "    try:\n        return s.recv(10) or 'closed'\n"
        "    except ConnectionError:\n        return 'closed'\n"
        "held = [socket.create_connection(('198.51.100.1', 80), 20) for _ in range(300)]\n"
        "print(said(b'GET / HTTP/1.1\\r\\nHost: shop.example\\r\\n\\r\\n'))\n"
        "for each in held: each.close()\n"
        "import time; time.sleep(0.3)\n"
        "print(said(b'\\0' * 100_000), said(b'GET / HTTP/1.1\\r\\n\\r\\n'), said(b'GET', True),\n"
        "      said(b'GET / HTTP/1.1\\r\\nHost: shop.example:80\\r\\n\\r\\n'))\n"
    )
    await sandbox.files.write("p.py", program)
    done = await sandbox.commands.run("python p.py", timeout=60)
    assert done.stdout == "closed\nclosed closed closed b'HTTP/1.1 2'\n"


@pytest.mark.parametrize(
    ("network", "said"),
    [
        ({"allow_out": ["shop.example"]}, "deny 0.0.0.0/0"),
        ({"allow_out": ["http://shop.example"], "deny_out": [ALL]}, "no IP address, CIDR block or name"),
        ({"allow_out": ["1.2.3.400"], "deny_out": [ALL]}, "no IP address, CIDR block or name"),
        ({"allow_out": ["2001:db8::1"], "deny_out": [ALL]}, "no rules for IPv6"),
        ({"deny_out": ["::/0"]}, "no rules for IPv6"),
        ({"deny_out": ["shop.example"]}, "names cannot be denied"),
    ],
)
async def test_rules_that_cannot_be_kept_are_refused(
    network: dict[str, list[str]], said: str, make_sandbox: MakeSandbox
) -> None:
    """With what is wrong with them, and nothing is made."""
    with pytest.raises(SandboxException, match=said) as caught:
        await make_sandbox(network=network)
    assert caught.value.status_code == 400
