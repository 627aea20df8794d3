"""One wrong write of a client costs a thread of `plan_execute` nothing: it can be read, and repair anew."""

from typing import Any

import pytest
from langchain_core.messages import RemoveMessage
from langgraph.types import Command

from agent.errors import InputError
from server.repair.conftest import MakeRepair
from support.repairs import ADD, APPROVE, DOUBLE, Repair, plan

WRONG = {"decisions": [{"type": "maybe"}]}


async def works(repair: Repair) -> None:
    """Look that the thread can be read, and that a new input is repaired."""
    await repair.values()
    await repair.start()
    assert (await repair.answer(APPROVE))["status"] == "passed"


@pytest.mark.parametrize(
    "update",
    [
        {"messages": 5},
        {"messages": {"__overwrite__": [5]}},
        {"messages": [{"role": "nobody"}]},
    ],
    ids=str,
)
async def test_command_that_cannot_be_applied_is_refused_before_it_is_kept(
    make_repair: MakeRepair, update: dict[str, Any]
) -> None:
    """The question stays open."""
    repair = make_repair(plan(ADD, DOUBLE))
    await repair.start()
    with pytest.raises(InputError, match=r"command\.update: `messages` cannot be used"):
        await repair.run(Command(resume=APPROVE, update=update))
    assert len(await repair.questions()) == 1
    await works(repair)


@pytest.mark.parametrize(
    "update",
    [
        [("status", "passed"), ("status", "failed")],
        [("decisions", {"__overwrite__": []}), ("decisions", {"__overwrite__": []})],
        {"spent_s": 1.0},
        {"messages": [RemoveMessage(id="not there")]},
        {"sandbox_id": {"not": "an id"}},
        {"sandbox_id": "x" * 100_000},
        {"sandbox_id": "../../v2/sandboxes?x="},
    ],
    ids=lambda update: str(update)[:60],
)
async def test_key_may_be_written_again_and_again(make_repair: MakeRepair, update: Any) -> None:
    """Beside wrong answers, which leave the question open with what was written beside them."""
    repair = make_repair(plan(ADD, DOUBLE))
    await repair.start()
    for _ in range(2):
        with pytest.raises(InputError):
            await repair.run(Command(resume=WRONG, update=update))
    await works(repair)


async def test_thread_can_be_read_after_an_answer_beside_a_new_beginning(make_repair: MakeRepair) -> None:
    """Two nodes of one step that write the same keys leave a thread that can be read."""
    repair = make_repair(plan(ADD, DOUBLE))
    await repair.start()
    await repair.run(Command(resume=APPROVE, goto="bootstrap"))
    await works(repair)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("limits", {"tries": 10**9}),
        ("limits", 5),
        ("limits", {"__overwrite__": {"time_s": -1}}),
        ("test_command", ["true"]),
        ("setup_command", "\0"),
        ("goal", 5),
        ("workdir", {}),
    ],
    ids=str,
)
async def test_what_a_repair_cannot_begin_with_is_never_kept(
    make_repair: MakeRepair, key: str, value: Any
) -> None:
    """By no way in: the next input, which does not name it, begins a repair with what it was."""
    repair = make_repair(plan(ADD, DOUBLE))
    await repair.start()
    before = (await repair.values())[key]
    for given in (
        Command(resume=APPROVE, update={key: value}),
        Command(goto="bootstrap", update={key: value}),
    ):
        with pytest.raises(InputError, match=f"`{key}`"):
            await repair.run(given)
    with pytest.raises(InputError, match=f"`{key}`"):
        await repair.graph.aupdate_state(repair.config, {key: value}, as_node="approve")
    assert (await repair.values())[key] == before
    await works(repair)
