"""A secret that a project's tests print is not shown."""

import json

import pytest

from server.repair.conftest import MakeRepair
from support.openai_server import OpenAIServer
from support.repairs import ADD, APPROVE, CALC, DOUBLE, plan

VALUE = "tok-77ab-of-the-shop"


async def test_known_secrets_are_redacted_in_reports_and_events(
    make_repair: MakeRepair, openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What tests and a step's commands print is named, not shown: in state, events and requests."""
    monkeypatch.setenv("SHOP_TOKEN", VALUE)
    project = CALC | {"tests/run.sh": f"echo using {VALUE[:4]}''{VALUE[4:]}\n" + CALC["tests/run.sh"]}
    openai.requests.clear()
    repair = make_repair(plan(ADD, ("calc.sh", f"echo {VALUE[:4]}''{VALUE[4:]}"), DOUBLE))
    await repair.start(project)
    state = await repair.answer(APPROVE)
    assert "using [SHOP_TOKEN redacted]" in state["tests_after"]["output"]
    assert VALUE not in json.dumps([repair.events, state, openai.requests], default=str)
    outputs = [item for request in openai.requests for item in request["input"] if "output" in item]
    assert "[SHOP_TOKEN redacted]" in json.dumps(outputs)
