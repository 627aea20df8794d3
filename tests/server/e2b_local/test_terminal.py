"""Terminals, and input that is streamed."""

from __future__ import annotations

import asyncio
import hashlib

import pytest
from e2b import CommandExitException, NotFoundException, PtySize, SandboxException
from e2b_code_interpreter import AsyncSandbox, Sandbox

from support.e2b_process import E2BLocal


class _Screen:
    """What a terminal has shown so far."""

    def __init__(self) -> None:
        self.text = ""
        self._more = asyncio.Event()

    def take(self, data: bytes) -> None:
        self.text += data.decode()
        self._more.set()

    async def shows(self, text: str) -> None:
        """Wait until `text` has been shown."""
        async with asyncio.timeout(30):
            while text not in self.text:
                self._more.clear()
                await self._more.wait()


async def test_a_terminal_runs_a_shell(shared: AsyncSandbox) -> None:
    """It has its size, folder and variables; what is typed is run; its exit code is told."""
    screen = _Screen()
    terminal = await shared.pty.create(
        PtySize(rows=30, cols=90), on_data=screen.take, cwd="/tmp", envs={"MINE": "v"}
    )
    await shared.pty.send_stdin(terminal.pid, b"tty; stty size; echo $MINE-$PWD-$TERM\n")
    await screen.shows("/dev/pts/")  # which one is the host's affair where there is no isolation
    await screen.shows("30 90")
    await screen.shows("v-/tmp-xterm")
    await shared.pty.resize(terminal.pid, PtySize(rows=40, cols=120))
    await shared.pty.send_stdin(terminal.pid, b"stty size; exit 3\n")
    await screen.shows("40 120")
    with pytest.raises(CommandExitException) as caught:
        await terminal.wait()
    assert caught.value.exit_code == 3


async def test_a_terminal_is_left_and_joined_again(shared: AsyncSandbox) -> None:
    """It goes on while nobody looks; killed, it is gone."""
    first, second = _Screen(), _Screen()
    terminal = await shared.pty.create(PtySize(rows=24, cols=80), on_data=first.take)
    await shared.pty.send_stdin(terminal.pid, b"kept=here\n")
    await first.shows("kept=here")
    await terminal.disconnect()
    again = await shared.pty.connect(terminal.pid, on_data=second.take)
    await shared.pty.send_stdin(terminal.pid, b"echo $kept-$kept\n")
    await second.shows("here-here")
    assert await shared.pty.kill(terminal.pid) is True
    with pytest.raises(CommandExitException) as caught:
        await again.wait()
    assert caught.value.error == "signal: killed"
    assert await shared.pty.kill(terminal.pid) is False


async def test_a_terminal_can_be_killed_at_once(shared: AsyncSandbox) -> None:
    """Before its shell is up, too: whoever waits for it learns of its end."""
    terminals = [await shared.pty.create(PtySize(rows=24, cols=80), on_data=lambda _: None) for _ in range(5)]
    killed = await asyncio.gather(*(shared.pty.kill(each.pid) for each in terminals))
    assert killed == [True] * 5
    shown = await shared.commands.run("ps -e -o pid=")
    assert {str(each.pid) for each in terminals}.isdisjoint(shown.stdout.split())
    for each in terminals:
        with pytest.raises(CommandExitException) as caught:
            await each.wait()
        assert caught.value.error == "signal: killed"


async def test_input_is_streamed_in_order(shared: AsyncSandbox) -> None:
    """Each piece arrives as it is sent, however many there are; the input stays open afterwards."""
    pieces = [f"line {n} {'x' * 5000}\n" for n in range(200)]
    size = sum(map(len, pieces))
    handle = await shared.commands.run(f"head -c {size} | md5sum; cat", background=True, stdin=True)
    stream = shared.commands.stream_input(handle.pid)
    for piece in pieces:
        await stream.send(piece)
    await stream.close()
    await shared.commands.send_stdin(handle.pid, "rest")
    await shared.commands.close_stdin(handle.pid)
    digest = hashlib.md5("".join(pieces).encode()).hexdigest()
    assert (await handle.wait()).stdout == f"{digest}  -\nrest"


async def test_input_for_nobody_is_refused(shared: AsyncSandbox) -> None:
    """No process has that id, or it takes no input."""
    with pytest.raises(NotFoundException):
        await shared.commands.stream_input(999_999).close()
    handle = await shared.commands.run("sleep 1000", background=True, stdin=False)
    stream = shared.commands.stream_input(handle.pid)
    await stream.send(b"x")
    with pytest.raises(SandboxException, match="stdin not enabled"):
        await stream.close()
    await handle.kill()


def test_the_sync_sdk_streams_input_too(server: E2BLocal) -> None:
    """What an iterable yields, to a command and to a terminal."""
    with Sandbox.create(**server.options) as sandbox:
        handle = sandbox.commands.run("read a; read b; echo $b $a", background=True, stdin=True)
        sandbox.commands.stream_input(handle.pid, iter(["one\n", b"two\n"]))
        assert handle.wait().stdout == "two one\n"
        terminal = sandbox.pty.create(PtySize(rows=24, cols=80))
        sandbox.pty.stream_input(terminal.pid, [b"echo $((6 * 7))", b"; exit\n"])
        shown: list[bytes] = []
        terminal.wait(on_pty=shown.append)
        assert b"42" in b"".join(shown)
