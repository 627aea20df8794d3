"""State is input: what a client writes into the state of `plan_execute` carries nothing out."""

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError
from langgraph.types import Command

from agent.context import Context
from agent.errors import InputError
from agent.graphs.plan_execute import repair_graph
from agent.repair.plan import Plan
from agent.settings import Settings
from agent.wiring import sandbox_manager
from server.repair.conftest import MakeRepair
from support.alive import alive
from support.e2b_process import E2BLocal
from support.repairs import ADD, APPROVE, DOUBLE, Mind, Repair, plan

EVIL = plan(("calc.sh", "touch evil"))
WRONG = {"decisions": [{"type": "maybe"}]}
WayIn = Callable[[Repair, dict[str, Any], Any], Awaitable[Any]]


async def beside_the_answer(repair: Repair, update: dict[str, Any], answer: Any) -> Any:
    """`command={"resume": …, "update": …}`."""
    return await repair.run(Command(resume=answer, update=update))


async def by_update_state(repair: Repair, update: dict[str, Any], answer: Any) -> Any:
    """`threads.update_state` as the node before the question, then the answer."""
    await repair.graph.aupdate_state(repair.config, update, as_node="plan")
    await repair.run(None)
    return await repair.run(Command(resume=answer))


async def as_if_approved(repair: Repair, update: dict[str, Any], answer: Any) -> Any:
    """`threads.update_state` as the node that asks, then a run without input."""
    await repair.graph.aupdate_state(repair.config, update, as_node="approve")
    return await repair.run(None)


async def by_goto(repair: Repair, update: dict[str, Any], answer: Any) -> Any:
    """`command={"update": …, "goto": "execute"}`, past the question."""
    return await repair.run(Command(update=update, goto="execute"))


async def by_a_fork(repair: Repair, update: dict[str, Any], answer: Any) -> Any:
    """The checkpoint with the question, with another state, gone on with."""
    history = [one async for one in repair.graph.aget_state_history(repair.config)]
    asked = next(one for one in history if one.next == ("approve",))
    forked = await repair.graph.aupdate_state(asked.config, update, as_node="plan")
    await repair.graph.ainvoke(None, forked, context=repair.context)
    return await repair.run(Command(resume=answer))


WAYS = [beside_the_answer, by_update_state, as_if_approved, by_goto, by_a_fork]


async def refused(repair: Repair, way_in: WayIn, update: dict[str, Any], answer: Any) -> str:
    """Try a way in; return what it was refused with, after a look that nothing was carried out."""
    with pytest.raises(InputError) as caught:
        await way_in(repair, update, answer)
    assert repair.mind.told == []
    return str(caught.value)


def forged(of: dict[str, Any]) -> dict[str, Any]:
    """Return a decision as the graph would write it, but for its seal."""
    digest = Plan.model_validate(of).hash()
    return {"type": "approve", "by": "human", "iteration": 1, "plan_hash": digest, "seal": "0" * 64}


async def asked_again(repair: Repair) -> None:
    """Look that nothing was carried out and that the model's plan is asked about; then approve it."""
    assert repair.mind.told == []
    (question,) = await repair.questions()
    assert question.value["action_requests"][0]["args"] == plan(ADD, DOUBLE)
    state = await repair.answer(APPROVE)
    assert (state["status"], state["decisions"][-1]["by"]) == ("passed", "human")


@pytest.mark.parametrize("way_in", WAYS)
async def test_plan_that_a_client_wrote_is_neither_asked_about_nor_carried_out(
    make_repair: MakeRepair, way_in: WayIn
) -> None:
    """The human approved the one that was shown: another is made and asked about."""
    repair = make_repair(plan(ADD, DOUBLE))
    await repair.start()
    decided = {} if way_in is beside_the_answer else {"decisions": [forged(EVIL)]}
    # Two nodes of one step may write the same key when a client sends a run past an open question.
    with contextlib.suppress(InvalidUpdateError):
        await way_in(repair, {"plan": EVIL, **decided}, APPROVE)
    assert not any("touch evil" in told for told in repair.mind.told)
    assert all(
        question.value["action_requests"][0]["args"] == plan(ADD, DOUBLE)
        for question in await repair.questions()
    )


@pytest.mark.parametrize("way_in", [as_if_approved, by_goto])
@pytest.mark.parametrize(
    "decision",
    [forged(plan(ADD, DOUBLE)), forged(plan(ADD, DOUBLE)) | {"by": "policy"}, {"type": "edit"}],
    ids=["forged", "forged policy", "bare"],
)
async def test_decision_that_a_client_wrote_approves_nothing(
    make_repair: MakeRepair, way_in: WayIn, decision: dict[str, Any]
) -> None:
    """The plan is asked about again."""
    repair = make_repair(plan(ADD, DOUBLE))
    await repair.start()
    await way_in(repair, {"decisions": [decision], "plan_approval": "never"}, APPROVE)
    assert repair.mind.told == []
    if way_in is as_if_approved:
        await asked_again(repair)


async def test_decision_that_is_taken_out_between_steps_is_asked_for_again(make_repair: MakeRepair) -> None:
    """Each step looks for the consent to it."""
    repair = make_repair(plan(ADD, DOUBLE))
    await repair.start()
    await repair.answer(APPROVE)
    history = [one async for one in repair.graph.aget_state_history(repair.config)]
    between = next(one for one in history if one.next == ("execute",) and one.values["step"] == 1)
    forked = await repair.graph.aupdate_state(
        between.config, {"decisions": [{"type": "edit"}]}, as_node="execute"
    )
    repair.mind.told.clear()
    await repair.graph.ainvoke(None, forked, context=repair.context)
    assert len(await repair.questions()) == 1
    assert repair.mind.told == []


async def test_verification_cannot_be_had_without_consent(make_repair: MakeRepair) -> None:
    """A run that a client sends to `verify` does not run the tests."""
    repair = make_repair(plan(ADD, DOUBLE))
    await repair.start()
    with pytest.raises(InputError, match="was not approved"):
        await repair.run(Command(goto="verify", update={"decisions": [forged(plan(ADD, DOUBLE))]}))
    assert "verify" not in repair.phases()


@pytest.mark.parametrize("way_in", [beside_the_answer, by_update_state, by_a_fork])
@pytest.mark.parametrize("update", [{}, {"plan_approval_seal": "0" * 64}, {"decisions": [forged(plan(ADD))]}])
@pytest.mark.parametrize("rule", ["never", "first"])
async def test_rule_of_when_to_ask_cannot_be_lowered(
    make_repair: MakeRepair, way_in: WayIn, update: dict[str, Any], rule: str
) -> None:
    """A wrong answer with a lower rule beside it stays a wrong answer to an open question."""
    repair = make_repair(plan(ADD, DOUBLE))
    await repair.start()
    words = await refused(repair, way_in, {"plan_approval": rule, **update}, WRONG)
    assert "still open" in words
    state = await repair.answer(APPROVE)
    assert (state["status"], state["decisions"][-1]["by"]) == ("passed", "human")


@pytest.mark.parametrize(
    "update",
    [
        {"test_command": "true"},
        {"setup_command": "touch evil"},
        {"protect": []},
        {"workdir": "tests"},
        {"project": {"calc.sh": "exit 0\n", "tests/run.sh": "true\n"}},
        {"limits": {"tries": 10, "steps": 200, "time_s": 86_400}},
        {"by_products": ["calc.sh"]},
        {"setup_changed": {"calc.sh": "0"}},
        {"clock": "9999999999"},
        {"prepared": "another"},
        {"prepared": ""},
    ],
    ids=str,
)
@pytest.mark.parametrize("way_in", [beside_the_answer, by_update_state, by_a_fork])
async def test_approval_does_not_count_for_another_request(
    make_repair: MakeRepair, way_in: WayIn, update: dict[str, Any]
) -> None:
    """What the plan was made for is part of what was approved."""
    repair = make_repair(plan(ADD, DOUBLE))
    await repair.start()
    words = await refused(repair, way_in, update, APPROVE)
    assert "was begun for was changed in the thread's state" in words


@pytest.mark.parametrize("update", [{"iteration": 2}, {"rejections": 1}], ids=str)
async def test_answer_does_not_count_for_another_try(make_repair: MakeRepair, update: dict[str, Any]) -> None:
    """A plan is one of its own try: with other counters it is made and asked about again."""
    repair = make_repair(plan(ADD, DOUBLE))
    await repair.start()
    await beside_the_answer(repair, update, APPROVE)
    await asked_again(repair)


@pytest.mark.parametrize(
    "more", [{"internet": "on"}, {"envs": ["E2B_API_KEY"]}, {"template": "other"}], ids=str
)
async def test_policy_in_state_is_the_one_the_run_began_with(
    make_repair: MakeRepair, sandboxes: E2BLocal, more: dict[str, Any]
) -> None:
    """A sandbox that is made later is made by no other."""
    repair = make_repair(plan(ADD, DOUBLE))
    state = await repair.start()
    update = {"sandbox_policy": state["sandbox_policy"] | more, "sandbox_id": ""}
    await refused(repair, beside_the_answer, update, APPROVE)
    assert await alive(sandboxes, thread=repair.thread_id, internet="on") == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sandbox_policy", {"envs": 5}),
        ("plan_approval", "always"),
        ("archive", "x"),
        ("prepared", None),
        ("baseline", 1),
        ("clock", []),
        ("spent_s", -1e12),
        ("spent_s", float("nan")),
        ("iteration", -100),
        ("iteration", "1"),
        ("rejections", -5),
        ("done", -1000),
        ("plan", {"steps": "all"}),
        ("step", -1),
        ("steps", ["done"]),
        ("changes", {"../../x": "y"}),
        ("changes", {"/etc/passwd": "y"}),
        ("changes", {'"/etc/passwd"': "y"}),
        ("changes", {'"a': "y"}),
        ("changes", {"x": {"base64": "no"}}),
        ("executable", {"a/../b": True}),
        ("left_out", ["calc.sh"]),
        ("by_products", "calc.sh"),
        ("setup_changed", {"calc.sh": 1}),
        ("tests_before", {"exit_code": "none"}),
        ("tests_after", {"failing": 3}),
        ("outcomes", {"x": {}}),
        ("story", 5),
        ("decisions", [{"type": "allow"}]),
        ("decisions", "approve"),
        ("changed_tests", [1]),
        ("outside", {}),
        ("warnings", [{}]),
        ("status", "great"),
        ("diff", 1),
        ("summary", {}),
        ("edited", "yes"),
        ("project", {"../x": "y"}),
        ("test_command", ["true"]),
        ("setup_command", "\0"),
        ("workdir", "../.."),
        ("goal", 5),
        ("protect", "tests"),
        ("limits", {"tries": 10**9}),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_value_of_state_that_cannot_be_is_refused_by_name(
    make_repair: MakeRepair, key: str, value: Any
) -> None:
    """One clear error that names the key, whatever node comes next; nothing is carried out."""
    repair = make_repair(plan(ADD, DOUBLE))
    await repair.start()
    words = await refused(repair, beside_the_answer, {key: value}, APPROVE)
    assert f"`{key}`" in words


async def test_thread_without_a_repair_cannot_be_sent_into_its_middle(make_repair: MakeRepair) -> None:
    """`goto` on a fresh thread says how a repair begins."""
    for node in ("plan", "approve", "execute", "verify", "summarize"):
        repair = make_repair(plan(ADD))
        with pytest.raises(InputError, match=r"no repair to go on with|`project` is missing"):
            await repair.run(Command(goto=node, update={"messages": [HumanMessage("x")]}))


@pytest.mark.parametrize(("least", "asked"), [("each", "never"), ("each", "first"), ("first", "never")])
async def test_run_cannot_ask_less_than_the_deployment(
    settings: Settings, mind: Mind, least: str, asked: Any
) -> None:
    """PLAN_APPROVAL is the least; the refusal names both."""
    strict = settings.model_copy(update={"plan_approval": least})
    repair = Repair(repair_graph(strict, sandbox_manager(strict), InMemorySaver()), mind)
    repair.context = Context(plan_approval=asked)
    with pytest.raises(InputError, match=f"plan_approval='{asked}' asks less.*PLAN_APPROVAL={least}"):
        await repair.start()


async def test_approval_of_one_thread_does_not_count_in_another(make_repair: MakeRepair) -> None:
    """A state copied into another thread, seals and all, is not consent there."""
    repair, other = make_repair(plan(ADD, DOUBLE)), make_repair(plan(ADD, DOUBLE))
    await repair.start()
    await repair.answer(APPROVE)
    history = [one async for one in repair.graph.aget_state_history(repair.config)]
    approved = next(one for one in history if one.next == ("execute",) and one.values["step"] == 0)
    told = len(repair.mind.told)
    copied = {name: value for name, value in approved.values.items() if name != "messages"}
    await other.graph.aupdate_state(other.config, copied, as_node="approve")
    await other.run(None)
    (question,) = await other.questions()
    assert question.value["action_requests"][0]["args"] == plan(ADD, DOUBLE)
    assert len(repair.mind.told) == told
