"""The graph as it is drawn and described."""

import re

from agent.graphs.plan_execute import graph
from agent.repair.state import RepairInput


def test_graph_draws_every_way_and_no_other() -> None:
    """Each edge leads where a router can send the run; nothing is drawn that cannot happen."""
    drawn = graph.get_graph().draw_mermaid()
    edges = set(re.findall(r"^\s*(\w+) -[-.]+>?(?: &nbsp;\w+&nbsp; -[-.]+>?)? ?(\w+);$", drawn, re.M))
    assert edges == {
        ("__start__", "bootstrap"),
        ("bootstrap", "plan"),
        ("bootstrap", "summarize"),
        ("plan", "approve"),
        ("plan", "summarize"),
        ("approve", "plan"),
        ("approve", "execute"),
        ("execute", "approve"),
        ("approve", "summarize"),
        ("execute", "execute"),
        ("execute", "verify"),
        ("verify", "plan"),
        ("verify", "summarize"),
        ("summarize", "__end__"),
    }


def test_input_is_what_a_client_may_send() -> None:
    """Nothing that decides or accounts can be sent in: no status, no policy, no sandbox, no decision."""
    assert set(graph.get_input_jsonschema()["properties"]) == set(RepairInput.__annotations__)
    ours = {"sandbox_id", "plan_approval", "decisions", "plan", "archive", "status", "spent_s"}
    assert not ours & set(RepairInput.__annotations__)
