"""Commands: output, environment, ends, input."""

from __future__ import annotations

import asyncio

import pytest
from e2b import CommandExitException, InvalidArgumentException, TimeoutException
from e2b_code_interpreter import AsyncSandbox


async def test_output_streams_as_it_is_written(shared: AsyncSandbox) -> None:
    """Standard output and error arrive apart, before the command has ended."""
    first = asyncio.Event()
    seen: list[str] = []

    def on_stdout(text: str) -> None:
        seen.append(text)
        first.set()

    handle = await shared.commands.run(
        "echo out; echo err >&2; read line; echo got $line", background=True, stdin=True, on_stdout=on_stdout
    )
    await first.wait()
    await shared.commands.send_stdin(handle.pid, "reply\n")
    result = await handle.wait()
    assert result.stdout == "out\ngot reply\n"
    assert result.stderr == "err\n"
    assert seen[0] == "out\n"


async def test_environment_and_folder(shared: AsyncSandbox) -> None:
    """A command sees the sandbox's variables, its own, its folder, and nothing of the host's environment."""
    result = await shared.commands.run("echo $A $B $E2B_SANDBOX_ID; pwd", envs={"B": "own"}, cwd="/tmp")
    assert result.stdout == f'it\'s "quoted" own {shared.sandbox_id}\n/tmp\n'
    assert "E2B_API_KEY" not in (await shared.commands.run("env")).stdout


async def test_a_folder_that_does_not_exist_is_refused(shared: AsyncSandbox) -> None:
    """The error names the folder."""
    with pytest.raises(InvalidArgumentException, match="cwd '/no/such' does not exist"):
        await shared.commands.run("true", cwd="/no/such")


async def test_a_non_zero_exit_is_told_with_its_output(shared: AsyncSandbox) -> None:
    """The exception carries code and both outputs."""
    with pytest.raises(CommandExitException) as caught:
        await shared.commands.run("echo out; echo err >&2; exit 3")
    assert (caught.value.exit_code, caught.value.stdout, caught.value.stderr) == (3, "out\n", "err\n")


async def test_a_timeout_ends_the_command_and_its_children(shared: AsyncSandbox) -> None:
    """After the timeout nothing of the command is left."""
    with pytest.raises(TimeoutException):
        await shared.commands.run("sleep 1001 & sleep 1002; true", timeout=1)
    found = await shared.commands.run("ps ax | grep -c '[s]leep 100' || true")
    assert found.stdout == "0\n"


async def test_background_commands_are_listed_and_killed(shared: AsyncSandbox) -> None:
    """A background command is listed until it is killed, and killing it again finds nothing."""
    handle = await shared.commands.run("sleep 1000", background=True)
    listed = {process.pid: process for process in await shared.commands.list()}
    assert listed[handle.pid].args == ["-l", "-c", "sleep 1000"]
    assert await shared.commands.kill(handle.pid) is True
    with pytest.raises(CommandExitException) as caught:
        await handle.wait()
    assert caught.value.exit_code == -1
    assert caught.value.error == "signal: killed"
    assert await shared.commands.kill(handle.pid) is False


async def test_connect_gives_further_output(shared: AsyncSandbox) -> None:
    """Another handle to a running command gets what it writes from then on, and its end."""
    handle = await shared.commands.run("read line; echo got $line", background=True, stdin=True)
    await handle.disconnect()
    again = await shared.commands.connect(handle.pid)
    await shared.commands.send_stdin(handle.pid, "it\n")
    assert (await again.wait()).stdout == "got it\n"


async def test_closing_stdin_ends_a_reader(shared: AsyncSandbox) -> None:
    """A program that reads to the end gets there."""
    handle = await shared.commands.run("cat", background=True, stdin=True)
    await handle.send_stdin("text")
    await handle.close_stdin()
    assert (await handle.wait()).stdout == "text"


async def test_large_output_arrives_whole(shared: AsyncSandbox) -> None:
    """Ten million bytes come through in order."""
    result = await shared.commands.run("seq 1 1300000")
    assert result.stdout == "".join(f"{n}\n" for n in range(1, 1300001))


async def test_the_template_has_its_tools(shared: AsyncSandbox) -> None:
    """python, pytest, pip and the packages promised are there."""
    result = await shared.commands.run(
        "python -c 'import numpy, pandas, matplotlib; print(matplotlib.__version__)' && pytest --version && "
        "pip --version && python3 --version"
    )
    assert result.stdout.startswith("3.10.")
    assert "pytest" in result.stdout


async def test_many_commands_at_once(shared: AsyncSandbox) -> None:
    """Commands do not mix up their outputs."""
    results = await asyncio.gather(
        *(shared.commands.run(f"echo {n}; sleep 0.0{n % 9}; echo {n}") for n in range(20))
    )
    assert [result.stdout for result in results] == [f"{n}\n{n}\n" for n in range(20)]
