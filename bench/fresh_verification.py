"""What it costs to verify a patch in a sandbox of its own, beside running the tests where the agent worked.

    python bench/fresh_verification.py [--rounds 5]

Repairs of a Python project on e2b-local with a model that answers at once, taken in turns. Measured is the
node `verify`, from the end of the last step to the verdict. Run it on an idle machine; the figures are
medians, and the ratios compare those of this run only.
"""

from __future__ import annotations

import argparse
import asyncio
import pathlib
import statistics
import sys
import time
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests"))

from agent.graphs.plan_execute import repair_graph
from agent.repair import nodes
from agent.repair.verifying import Verified, Verifying, tested
from agent.settings import Settings
from agent.wiring import sandbox_manager
from support.e2b_process import WITHOUT_PLUGINS, isolation_arguments, start_e2b_local
from support.openai_server import OpenAIServer
from support.played_model import PlayedModel
from support.repairs import APPROVE, Mind, Repair, plan

PROJECT = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "tests/test_calc.py": "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
} | {f"package/module_{number}.py": "x = 1\n" * 100 for number in range(100)}
MEND = plan(("calc.py", "sed -i 's/a - b/a + b/' calc.py"))
SETUPS = {"no set-up": "", "a set-up of 1 s": "sleep 1"}


class InTheSame(Verifying):
    """Runs the tests where the agent worked."""

    async def verified(self, state: Any, runtime: Any, work: Any, baseline: Any) -> Verified:
        """Run them; what else `verify` does stays."""
        return Verified(await tested(work, baseline, state, await work.snapshot()))


async def verify_s(settings: Settings, mind: Mind, verifying: type[Verifying], setup: str) -> float:
    """Repair the project once, and return how long `verify` took."""
    nodes.Verifying = verifying  # type: ignore[misc]
    mind.plans = [MEND]
    repair = Repair(repair_graph(settings, sandbox_manager(settings), InMemorySaver()), mind)
    await repair.start(PROJECT, test_command="python -m pytest -q", setup_command=setup)
    ended = {}
    stream = repair.graph.astream(
        Command(resume=APPROVE), repair.config, context=repair.context, stream_mode="updates"
    )
    async for update in stream:
        ended |= dict.fromkeys(update, time.perf_counter())
    assert (await repair.values())["status"] == "passed"
    return ended["verify"] - ended["execute"]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    mind = Mind()
    server, model = (
        start_e2b_local(*isolation_arguments(), *WITHOUT_PLUGINS),
        OpenAIServer(PlayedModel(play=mind)),
    )
    settings = Settings.from_env(
        {**server.env, **model.env, "DEPLOYMENT": "bench", "SANDBOX_INTERNET": "off"}
    )
    try:
        for name, setup in SETUPS.items():
            times: dict[type[Verifying], list[float]] = {Verifying: [], InTheSame: []}
            for _ in range(rounds):
                for kind, taken in times.items():
                    taken.append(await verify_s(settings, mind, kind, setup))
            fresh, same = (statistics.median(taken) for taken in times.values())
            print(
                f"verify, {name}: {fresh:.2f} s; in the agent's sandbox: {same:.2f} s; "
                f"{fresh / same:.2f} x, + {fresh - same:.2f} s"
            )
    finally:
        server.stop()
        model.stop()


if __name__ == "__main__":
    asyncio.run(main())
