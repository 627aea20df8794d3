"""Several hundred runs under everything that goes wrong, and what is left afterwards: nothing.

    python bench/soak.py [--runs 300] [--at-once 6] [--seed N] [--restart-every 20]

A real `langgraph dev` serves the tests' worker on a real e2b-local. Clients run turns, cancel them, roll them
back, send a second run, leave questions open, answer them, delete threads; meanwhile the server is stopped or
killed, sandboxes die, and the sandbox service answers 429 and 5xx, late, or not at all. Then all faults end:
every thread that is left must work, and after one lease and one sweep no sandbox may be alive.

It prints counts, and ends with 1 when an answer was wrong, a thread could not go on, or a sandbox was left.
What a killed development server forgets is counted and not called wrong. A question that a stopped one has
lost (see `agent.client.open_questions`) is asked again, as `sandbox-agent` does, and counted.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import pathlib
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from agent.client.open_questions import open_questions

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests"))

from support import worker
from support.alive import alive
from support.e2b_process import WITHOUT_PLUGINS, E2BLocal, isolation_arguments, start_e2b_local
from support.langgraph_dev import DevServer
from support.worker import ASK, FAIL, command, python, saying

DEPLOYMENT = "soak"
LEASE_S = 30
FORGETS_S = 15
"""What a scene did shortly before it began its thread may be forgotten, too: state is flushed every 10 s."""
MAX_RUNNING = 40


@dataclass
class Soak:
    """Everything that the clients and the chaos share."""

    dev: DevServer
    sandboxes: E2BLocal
    dice: random.Random
    runs_left: int
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    threads: set[str] = field(default_factory=set)
    killed_at: list[float] = field(default_factory=list)
    ups_and_downs: int = 0
    """How often the server went, and came back."""

    def forgiven(self, since: float) -> bool:
        """Whether a killed server may have forgotten something of a scenario that began then."""
        return any(since - FORGETS_S <= at for at in self.killed_at)


class Scene:
    """One client's dealings with one thread."""

    def __init__(self, soak: Soak, client: LangGraphClient, thread: str) -> None:
        self.soak, self.client, self.thread = soak, client, thread
        self.began = time.monotonic()
        self.a, self.b = soak.dice.randrange(1000), soak.dice.randrange(1000)
        self.context = {
            "keep": soak.dice.choice(["run", "thread"]),
            "start": soak.dice.choice(["eager", "lazy"]),
        }

    async def start(self, *turns: Any, **more: Any) -> str:
        """Start a run and return its id."""
        self.soak.runs_left -= 1
        self.soak.counts["runs"] += 1
        options = {"input": saying(*turns), **more}
        run = await self.client.runs.create(self.thread, "worker", context=self.context, **options)
        return str(run["run_id"])

    async def ended(self, run: str) -> str:
        """Wait for a run; return its status, "gone" where it was rolled back or forgotten."""
        while True:
            try:
                status = (await self.client.runs.get(self.thread, run))["status"]
            except httpx.HTTPStatusError as exc:
                if exc.response.status_code == 404:
                    return "gone"
                raise
            if status not in {"pending", "running"}:
                return str(status)
            await asyncio.sleep(0.1)

    async def whole(self, *turns: Any, **more: Any) -> str:
        """Start a run and wait for its end."""
        return await self.ended(await self.start(*turns, **more))

    async def state(self) -> dict[str, Any]:
        """Return the thread's state: its values, and what it asks."""
        return dict(await self.client.threads.get_state(self.thread))

    async def check(self, expected: str, *, since: int = 0) -> bool:
        """Compare the last result with what it must be; a told loss or failure explains another.

        Args:
            expected: what the last tool call must have printed.
            since: how many messages of the thread are of earlier turns, and explain nothing now.

        Returns:
            Whether it is what it must be.
        """
        messages = (await self.state())["values"].get("messages", [])[since:]
        results = [message["content"] for message in messages if message["type"] == "tool"]
        if results and results[-1] == f"<stdout>\n{expected}\n</stdout>":
            self.soak.counts["right"] += 1
            return True
        if any("error: " in text or "told of a loss" in text for text in (m["content"] for m in messages)):
            self.soak.counts["told"] += 1
        elif self.soak.forgiven(self.began):
            self.soak.counts["forgotten"] += 1
        else:
            story = [f"{message['type']}: {str(message['content'])[:80]}" for message in messages]
            self.soak.wrong.append(f"{self.thread}: {expected!r} expected in the end of {story}")
        return False

    def remember(self) -> list[Any]:
        """Return the turns that set a variable, do some work, and print what follows from it."""
        return [
            [python(f"a = {self.a}")],
            [command("sleep 0.2; echo a > a.txt"), python(f"b = {self.b}")],
            [python("print(a * b)")],
        ]

    @property
    def product(self) -> str:
        """What the last of them prints."""
        return str(self.a * self.b)


async def plain(scene: Scene) -> None:
    """A whole run."""
    if await scene.whole(*scene.remember()) == "success":
        await scene.check(scene.product)


async def two_turns(scene: Scene) -> None:
    """A second turn in the kept sandbox."""
    scene.context["keep"] = "thread"
    if await scene.whole(*scene.remember()) != "success" or not await scene.check(scene.product):
        return
    before = len((await scene.state())["values"].get("messages", []))
    if await scene.whole([python("print(a + b)")]) == "success":
        await scene.check(str(scene.a + scene.b), since=before)


async def answered(scene: Scene) -> None:
    """A question, an answer after a while."""
    await scene.whole([python(f"a = {scene.a}")], [ASK], [python("print(a)")])
    asked = (await scene.state())["interrupts"]
    if not asked:
        return
    await asyncio.sleep(scene.soak.dice.random())
    while True:
        before = scene.soak.ups_and_downs
        if (await open_questions(scene.client, scene.thread)).lost:
            scene.soak.counts["questions lost by the server, asked again"] += 1
            await scene.whole(input=None)
        if await scene.whole(input=None, command={"resume": {asked[0]["id"]: "yes"}}) != "success":
            return
        # Lost once more, between the look and the answer?
        if scene.soak.ups_and_downs == before or not (await scene.state())["interrupts"]:
            break
    await scene.check(str(scene.a))


async def left_open(scene: Scene) -> None:
    """A question that nobody answers."""
    await scene.whole([python("a = 1"), ASK])


async def message_instead(scene: Scene) -> None:
    """A message where an answer was asked for."""
    await scene.whole([python(f"a = {scene.a}")], [ASK])
    if await scene.whole([python(f"print({scene.a})")]) == "success":
        await scene.check(str(scene.a))


async def failing(scene: Scene) -> None:
    """A tool that raises."""
    await scene.whole([python("a = 1")], [FAIL])


async def _begun(scene: Scene) -> str:
    run = await scene.start([python("a = 1")], [command("sleep 60")])
    await asyncio.sleep(scene.soak.dice.random() * 2)
    return run


async def cancelled(scene: Scene) -> None:
    """A cancel at any moment, then another turn."""
    run = await _begun(scene)
    await scene.client.runs.cancel(scene.thread, run, wait=True)
    if await scene.whole([python(f"print({scene.a})")]) == "success":
        await scene.check(str(scene.a))


async def rolled_back(scene: Scene) -> None:
    """A rollback at any moment, then, perhaps, another turn."""
    run = await _begun(scene)
    await scene.client.runs.cancel(scene.thread, run, wait=True, action="rollback")
    if scene.soak.dice.random() < 0.5 and await scene.whole(*scene.remember()) == "success":
        await scene.check(scene.product)


async def second_run(scene: Scene) -> None:
    """A second run in place of the first."""
    await _begun(scene)
    how = scene.soak.dice.choice(["interrupt", "rollback"])
    if await scene.whole(*scene.remember(), multitask_strategy=how) == "success":
        await scene.check(scene.product)


async def deleted(scene: Scene) -> None:
    """A thread deleted while its run works, or asks."""
    if scene.soak.dice.random() < 0.5:
        await _begun(scene)
    else:
        await scene.whole([python("a = 1")], [ASK])
    await scene.client.threads.delete(scene.thread)
    scene.soak.threads.discard(scene.thread)


SCENES: list[Callable[[Scene], Awaitable[None]]] = [
    plain,
    two_turns,
    answered,
    left_open,
    message_instead,
    failing,
    cancelled,
    rolled_back,
    second_run,
    deleted,
]


async def client_loop(soak: Soak) -> None:
    """Play scenes until the runs are used up."""
    async with get_client(url=soak.dev.url) as client:
        while soak.runs_left > 0:
            play = soak.dice.choice(SCENES)
            try:
                thread = str((await client.threads.create())["thread_id"])
                soak.threads.add(thread)
                async with asyncio.timeout(180):
                    await play(Scene(soak, client, thread))
                soak.counts[play.__name__] += 1
            except TimeoutError:
                soak.wrong.append(f"{thread}: {play.__name__} did not end within 180 s")
            except httpx.HTTPStatusError as exc:
                # A killed server forgets threads; a stopped one refuses.
                soak.counts[f"cut off [{exc.response.status_code}]"] += 1
                if exc.response.status_code not in {404, 409, 500, 502, 503}:
                    soak.wrong.append(f"{play.__name__}: {exc}")
            except httpx.HTTPError:
                soak.counts["cut off"] += 1
                await asyncio.sleep(0.5)


FAULTS: list[dict[str, Any]] = [
    {"kind": "status", "match": "POST /v2/sandboxes$", "status": 429, "times": 2},
    {"kind": "status", "match": "", "status": 503, "times": 2},
    {"kind": "status", "match": "", "status": 502, "times": 2},
    {"kind": "status", "match": "DELETE /sandboxes/", "status": 500, "times": 8},
    {"kind": "status", "match": "POST .*/pause", "status": 500, "times": 8},
    {"kind": "late", "match": "POST /v2/sandboxes$", "seconds": 1.0},
    {"kind": "lost", "match": "POST /v2/sandboxes$"},
    {"kind": "delay", "match": "", "seconds": 0.5, "times": 5},
]


async def faults(soak: Soak) -> None:
    """Make the sandbox service fail, now and then, and sandboxes die."""
    while soak.runs_left > 0:
        await asyncio.sleep(0.5 + soak.dice.random() * 2)
        if soak.dice.random() < 0.3:
            # The question may meet a fault of its own, and the sandbox may end meanwhile.
            # The SDK's classes for that have no common base.
            with contextlib.suppress(Exception):
                box = soak.dice.choice(await alive(soak.sandboxes, deployment=DEPLOYMENT))
                await asyncio.to_thread(soak.sandboxes.die, box.sandbox_id)
                soak.counts["sandboxes that died"] += 1
        else:
            fault = soak.dice.choice(FAULTS)
            await asyncio.to_thread(soak.sandboxes.inject, **fault)
            soak.counts["faults"] += 1


async def restarts(soak: Soak, every_s: float) -> None:
    """Stop the server, or kill it, and start it again."""
    while soak.runs_left > 0:
        await asyncio.sleep(every_s * (0.5 + soak.dice.random()))
        soak.ups_and_downs += 1
        if soak.dice.random() < 0.5 and soak.dev.pid:
            soak.killed_at.append(time.monotonic())
            os.kill(soak.dev.pid, signal.SIGKILL)
            soak.counts["servers killed"] += 1
        else:
            soak.counts["servers stopped"] += 1
        await soak.dev.restart()
        soak.ups_and_downs += 1


async def go_on(soak: Soak) -> None:
    """Every thread that the server still knows must be able to do a turn."""
    gate = asyncio.Semaphore(6)

    async def one(client: LangGraphClient, thread: str) -> None:
        async with gate:
            scene = Scene(soak, client, thread)
            status = ""
            while not status:
                try:
                    before = len((await scene.state())["values"].get("messages", []))
                    async with asyncio.timeout(120):
                        status = await scene.whole([python(f"print({scene.product})")])
                except httpx.HTTPStatusError as exc:
                    if exc.response.status_code == 404 and soak.killed_at:
                        soak.counts["threads forgotten"] += 1
                        return
                    raise
                except httpx.ReadError:  # the server closes idle connections, also as one is used again
                    soak.counts["connections closed by the server"] += 1
            if status == "success":
                await scene.check(scene.product, since=before)
                soak.counts["threads that went on"] += 1
            else:
                soak.wrong.append(f"{thread}: could not go on: {status}")

    async with get_client(url=soak.dev.url) as client:
        await asyncio.gather(*(one(client, thread) for thread in sorted(soak.threads)))


async def leave_open(soak: Soak) -> None:
    """Leave a few questions open and threads deleted, for the sweep alone."""
    async with get_client(url=soak.dev.url) as client:
        for play in (left_open, deleted, two_turns, failing):
            thread = str((await client.threads.create())["thread_id"])
            await play(Scene(soak, client, thread))


async def sweep(soak: Soak) -> str:
    """Wait for one lease and sweep once, as an operator would; return what it printed."""
    deadline = time.monotonic() + LEASE_S + 330
    while any(box.state.value == "running" for box in await alive(soak.sandboxes, deployment=DEPLOYMENT)):
        if time.monotonic() > deadline:
            soak.wrong.append("a sandbox is still running after its lease")
            break
        await asyncio.sleep(0.5)
    process = await asyncio.create_subprocess_exec(
        str(pathlib.Path(sys.executable).parent / "sandbox-agent"),
        *("sandboxes", "sweep", "--server", soak.dev.url),
        env={
            **os.environ,
            **soak.sandboxes.env,
            "DEPLOYMENT": DEPLOYMENT,
            "SANDBOX_IDLE_LIMIT": "0",
            "SANDBOX_HUMAN_LIMIT": "0",
        },
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await process.communicate()
    if process.returncode:
        soak.wrong.append(f"the sweep ended with {process.returncode}")
    return printed.decode().strip().splitlines()[-1]


async def main() -> int:
    """Run the soak and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--at-once", type=int, default=6, help="clients at a time")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--restart-every", type=float, default=20.0, help="seconds between two, about")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(10**6)
    print(f"seed {seed}", flush=True)
    sandboxes = start_e2b_local(*isolation_arguments(), *WITHOUT_PLUGINS, "--max-running", str(MAX_RUNNING))
    try:
        with tempfile.TemporaryDirectory() as name:
            return await _soak(sandboxes, pathlib.Path(name), options, seed)
    finally:
        sandboxes.stop()


async def _soak(sandboxes: E2BLocal, folder: pathlib.Path, options: argparse.Namespace, seed: int) -> int:
    config = folder / "config.json"
    graphs = {"worker": f"{worker.__file__}:graph"}
    config.write_text(
        json.dumps({"dependencies": ["."], "graphs": graphs, "http": {"app": "agent.server.webapp:app"}})
    )
    env = {
        **sandboxes.env,
        "DEPLOYMENT": DEPLOYMENT,
        "SANDBOX_TIMEOUT": str(LEASE_S),
        "COMMAND_TIMEOUT": "20",
        "CODE_TIMEOUT": "20",
        "PYTHONPATH": str(pathlib.Path(worker.__file__).parents[1]),
    }
    began = time.monotonic()
    async with DevServer(config, folder, env=env, arguments=["--n-jobs-per-worker", "8"]) as dev:
        soak = Soak(dev, sandboxes, random.Random(seed), options.runs)
        chaos = [
            asyncio.create_task(faults(soak)),
            asyncio.create_task(restarts(soak, options.restart_every)),
        ]
        await asyncio.gather(*(client_loop(soak) for _ in range(options.at_once)))
        await asyncio.gather(*chaos)
        sandboxes.clear_faults()
        await go_on(soak)
        await leave_open(soak)
        last = await sweep(soak)
        left = await alive(sandboxes, deployment=DEPLOYMENT)
        blocking = sum("BlockingError" in line for line in dev.log.splitlines())
    for what, count in sorted(soak.counts.items()):
        print(f"{count:6} {what}")
    print(f"{len(left):6} sandboxes alive after one lease and one sweep ({last})")
    print(f"{len(soak.wrong):6} wrong", *soak.wrong, sep="\n       ")
    print(f"{time.monotonic() - began:6.0f} s")
    return int(bool(soak.wrong or left or blocking))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
