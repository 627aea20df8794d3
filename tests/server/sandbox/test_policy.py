"""What a policy gives a sandbox: variables by name, the internet for a set-up, a place among the running."""

import asyncio
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from e2b_code_interpreter import AsyncSandbox

from agent.errors import InputError, SandboxError
from agent.sandbox.e2b import E2BProvider, OwnedSandbox
from agent.sandbox.live import box
from agent.sandbox.manager import SandboxManager
from agent.sandbox.owners import Owner
from agent.sandbox.policy import SandboxPolicy
from agent.sandbox.retries import Retries
from agent.settings import Settings
from agent.wiring import sandbox_policy
from server.sandbox.conftest import MakeManager
from support import small_world
from support.alive import alive
from support.e2b_process import E2BLocal, isolation_arguments, isolation_missing, start_e2b_local


async def test_variables_are_looked_up_for_each_call_and_never_in_arguments(
    settings: Settings, owner: Owner, sandboxes: E2BLocal
) -> None:
    """The value that holds when a call begins is the one it sees, in commands and cells (A19)."""
    values = {"TOKEN": "first-value", "OTHER": "not-passed-on"}
    asked: list[tuple[str, Sequence[str]]] = []

    async def environment(whose: Owner, names: Sequence[str]) -> Mapping[str, str]:
        asked.append((whose.thread, list(names)))
        return {name: values[name] for name in names}

    async def deployment() -> str:
        return "manager-tests"

    manager = SandboxManager(
        E2BProvider(settings),
        policy=SandboxPolicy(envs=["TOKEN"]),
        deployment=deployment,
        environment=environment,
    )
    acquired = await manager.acquire(owner, "")
    work = box(acquired.handle)
    look = "echo $TOKEN $OTHER; cat /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c [f]irst-value"
    assert (await work.run_command(look, timeout_s=30)).stdout == "first-value\n0\n"
    values["TOKEN"] = "second"
    assert (await work.run_command("echo $TOKEN", timeout_s=30)).stdout == "second\n"
    cell = await work.run_code("import os; print(os.environ.get('TOKEN'))", timeout_s=30)
    assert cell.stdout == "second\n"
    assert asked == [(owner.thread, ["TOKEN"])] * 3
    assert await manager.release(owner, acquired.sandbox_id) == ""


async def test_a_run_cannot_ask_for_variables_that_the_deployment_does_not_pass_on() -> None:
    """It may have fewer, never others."""
    policy = SandboxPolicy(envs=["TOKEN", "REGION"])

    class Wanting:
        envs = ("TOKEN",)

    assert policy.varied(Wanting()).envs == ["TOKEN"]
    Wanting.envs = ("TOKEN", "E2B_API_KEY")
    with pytest.raises(InputError, match=r"E2B_API_KEY.*SANDBOX_ENVS: TOKEN, REGION"):
        policy.varied(Wanting())


@pytest.mark.skipif(
    shutil.which("pasta") is None
    or not os.access("/dev/net/tun", os.R_OK | os.W_OK)
    or isolation_missing() is not None,
    reason="a way to the internet needs bubblewrap and pasta (passt), which may use /dev/net/tun",
)
async def test_the_internet_is_there_for_the_set_up_and_then_really_cut(
    make_manager: MakeManager, owner: Owner
) -> None:
    """internet=setup: a way out while the set-up command runs and none after it, also for a later connect."""

    async def ways_out(handle: object) -> int:
        done = await box(handle).run_command("grep -c : /proc/net/dev", timeout_s=30)
        return int(done.stdout) - 1

    manager = make_manager(internet="setup")
    acquired = await manager.acquire(owner, "", setup=True)
    assert await ways_out(acquired.handle) > 0
    await manager.setup_done(acquired)
    assert await ways_out(acquired.handle) == 0
    await manager.rest(owner.run)
    later = await make_manager(internet="setup").acquire(replace(owner, run="later"), acquired.sandbox_id)
    assert await ways_out(later.handle) == 0
    plain = await manager.acquire(replace(owner, run="b", task="no-setup", thread="no-setup"), "")
    assert await ways_out(plain.handle) == 0


@pytest.mark.skipif(small_world.missing() is not None, reason=str(small_world.missing()))
async def test_a_list_of_hosts_is_all_that_is_reached(tmp_path: Path, owner: Owner) -> None:
    """By name, during the set-up and after it, also where another process connects to the sandbox."""
    program = (
        "import urllib.request as u\n"
        "for host in ('shop.example', 'other.example'):\n"
        "    try:\n        print(u.urlopen(f'http://{host}', timeout=10).read().decode())\n"
        "    except OSError:\n        print('not reached')\n"
    )

    async def deployment() -> str:
        return "hosts"

    async with small_world.standing(tmp_path) as world:
        server = world.start_e2b_local()
        try:
            settings = Settings.from_env(
                {**server.env, "DEPLOYMENT": "hosts", "SANDBOX_INTERNET": "shop.example"}
            )

            def manager() -> SandboxManager:
                return SandboxManager(
                    E2BProvider(settings), policy=sandbox_policy(settings), deployment=deployment
                )

            first = manager()
            acquired = await first.acquire(owner, "", setup=True)
            await box(acquired.handle).write_files({"reach.py": program.encode()})
            await first.setup_done(acquired)
            later = await manager().acquire(replace(owner, run="later"), acquired.sandbox_id)
            for handle in (acquired.handle, later.handle):
                done = await box(handle).run_command("python reach.py", timeout_s=30)
                assert done.stdout == "this is 198.51.100.1\nnot reached\n", done.stderr
        finally:
            server.stop()


async def test_runs_wait_for_a_place_among_the_running() -> None:
    """Ten runs where three sandboxes may run: each gets its turn, never more than three are alive (A16)."""
    limited = start_e2b_local(*isolation_arguments(), "--max-running", "3", "--pool", "0")
    try:
        settings = Settings.from_env({**limited.env, "DEPLOYMENT": "limited"})

        async def deployment() -> str:
            return "limited"

        patient = Retries((0.1,) * 3, (0.3,) * 60)
        manager = SandboxManager(
            E2BProvider(settings), policy=SandboxPolicy(), deployment=deployment, retries=patient
        )
        most = 0

        async def run(number: int) -> str:
            nonlocal most
            owner = Owner("agent", f"thread-{number}", f"run-{number}", f"task-{number}")
            acquired = await manager.acquire(owner, "")
            most = max(most, len(await alive(limited, deployment="limited")))
            said = (await box(acquired.handle).run_command(f"echo {number}", timeout_s=30)).stdout
            await manager.release(owner, acquired.sandbox_id)
            return said

        assert await asyncio.gather(*map(run, range(10))) == [f"{number}\n" for number in range(10)]
        assert 1 <= most <= 3
        assert await alive(limited, deployment="limited") == []
    finally:
        limited.stop()


class Misleading(E2BProvider):
    """A service that answers a connect with another sandbox than was asked for, as users have reported."""

    other = ""

    async def connect(self, sandbox_id: str, lease_s: int) -> OwnedSandbox:
        """Connect to the other one."""
        return await super().connect(self.other, lease_s)


async def test_a_connect_that_leads_elsewhere_is_looked_at_again(
    make_manager: MakeManager, settings: Settings, owner: Owner, sandboxes: E2BLocal
) -> None:
    """Another sandbox of the thread is recorded under its own id; a stranger's is refused (A7)."""
    first = await make_manager().acquire(owner, "")
    second = await make_manager().acquire(replace(owner, run="b", task=f"b-{owner.task}"), "")
    stranger = await make_manager().acquire(replace(owner, thread="stranger", task=f"s-{owner.task}"), "")

    async def deployment() -> str:
        return "manager-tests"

    provider = Misleading(settings)
    manager = SandboxManager(provider, policy=SandboxPolicy(), deployment=deployment)
    provider.other = second.sandbox_id
    found = await manager.acquire(replace(owner, run="c"), first.sandbox_id)
    assert (found.how, found.sandbox_id) == ("connected", second.sandbox_id)
    provider.other = stranger.sandbox_id
    with pytest.raises(SandboxError, match="belongs to another owner"):
        await manager.acquire(replace(owner, run="d"), first.sandbox_id)
    for acquired in (first, second, stranger):
        assert await AsyncSandbox.kill(acquired.sandbox_id, **sandboxes.options)


@pytest.mark.parametrize(
    ("made_with", "internet", "narrowed"),
    [
        ("on", "off", [()]),
        ("on", "setup", [()]),
        ("on", ["a.example"], [("a.example",)]),
        ("hosts-0", "off", [()]),
        ("hosts-0", ["a.example"], [("a.example",)]),
        ("on", "on", []),
        ("off", "off", []),
        ("off", ["a.example"], []),
    ],
)
async def test_sandbox_made_with_more_of_the_internet_is_narrowed_at_the_next_connect(
    settings: Settings, owner: Owner, made_with: str, internet: object, narrowed: list[tuple[str, ...]]
) -> None:
    """A set-up that was cut short, or other settings since: nothing is kept that the run may not have."""
    asked: list[tuple[str, ...]] = []

    class Provider(E2BProvider):
        """Notes what is cut; whether the service then cuts it, another test shows."""

        async def cut_internet(self, sandbox_id: str, *, except_for: Sequence[str] = ()) -> None:
            asked.append(tuple(except_for))

    async def deployment() -> str:
        return "manager-tests"

    manager = SandboxManager(
        Provider(settings), policy=SandboxPolicy.model_validate({"internet": internet}), deployment=deployment
    )
    metadata = owner.metadata("manager-tests") | {"internet": made_with}
    made = await AsyncSandbox.create(metadata=metadata, **E2BProvider(settings)._options())
    later = replace(owner, run=f"{owner.run}-later", task=f"{owner.task}-later")
    acquired = await manager.acquire(later, made.sandbox_id)
    assert (acquired.how, acquired.sandbox_id) == ("connected", made.sandbox_id)
    assert asked == narrowed
    # A policy that a client wrote into state gives back nothing of it.
    await manager.acquire(replace(later, run="another"), made.sandbox_id, SandboxPolicy(internet="on"))
    assert asked == narrowed * 2
    await manager.release(later, made.sandbox_id)
