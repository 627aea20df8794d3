"""What clients see of a tool call, whatever form its result has."""

from types import SimpleNamespace
from typing import Any

import pytest
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.types import Command

from agent.tools.events import ToolEventsMiddleware

MESSAGE = ToolMessage("exit_code: 0", tool_call_id="c1")


@pytest.mark.parametrize("result", [MESSAGE, Command(update={"messages": [MESSAGE], "sandbox_id": "i1"})])
async def test_the_end_of_a_call_tells_its_result(result: Any) -> None:
    """A call for which a sandbox was made or replaced comes with an update of state."""
    events: list[dict[str, Any]] = []
    call: Any = {"name": "run_command", "args": {}, "id": "c1"}
    runtime: Any = SimpleNamespace(stream_writer=events.append)
    request = ToolCallRequest(tool_call=call, tool=None, state={}, runtime=runtime)

    async def handler(_: ToolCallRequest) -> Any:
        return result

    assert await ToolEventsMiddleware().awrap_tool_call(request, handler) == result
    assert [event["event"] for event in events] == ["start", "end"]
    assert events[1]["text"] == "exit_code: 0"
