"""Follow one `plan_execute` run to its end, asking where it asks."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from agent.cli.approval import Decide
from agent.cli.repair_view import RepairView
from agent.cli.screen import Screen
from agent.client import Driver, Event, Failed, Finished, Interrupted, Outcome


def run_repair(
    runner: asyncio.Runner,
    driver: Driver,
    request: Mapping[str, Any],
    *,
    screen: Screen,
    view: RepairView,
    decide: Decide,
    deadline_s: float | None = None,
) -> Finished | Failed:
    """Start a repair and follow it to its end.

    The questions are asked between two stretches of the event loop: a prompt blocks nothing, and Ctrl-C
    there is an ordinary KeyboardInterrupt.

    Args:
        runner: the loop that the driver's connection belongs to.
        driver: a new thread of `plan_execute`.
        request: the graph's input.
        screen: for the spinner.
        view: shows the events.
        decide: gives the answers.
        deadline_s: limit of each stretch, in seconds; default none.

    Returns:
        How it ended.

    Raises:
        ClientError: see `Driver.start`.
    """
    stream = driver.start(request, deadline_s=deadline_s)
    doing = "Running the tests as they are"
    while True:
        with screen.busy(doing) as busy:
            view.follow(busy)
            outcome = runner.run(_to_the_end(stream, view))
            view.follow(None)
        if not isinstance(outcome, Interrupted):
            return outcome
        stream = driver.answer(decide(outcome.interrupts), deadline_s=deadline_s)
        doing = "Going on with the answer"


async def _to_the_end(stream: AsyncGenerator[Event, None], view: RepairView) -> Outcome:
    outcome: Outcome | None = None
    async with aclosing(stream) as events:
        async for event in events:
            view.show(event)
            if isinstance(event, Interrupted | Finished | Failed):
                outcome = event
    assert outcome is not None, "a stream of events ends with an outcome"
    return outcome
