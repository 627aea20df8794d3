"""The middleware in an agent of one's own: losses are told, history is mended, policy outlives a resume."""

from typing import Any

from e2b_code_interpreter import AsyncSandbox
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain.tools import ToolRuntime, tool
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from agent.context import Context
from agent.sandbox.middleware import SandboxMiddleware
from agent.sandbox.notices import LOST_IN_CALL
from agent.sandbox.watch import RunWatch
from agent.tools import run_command, run_python
from server.sandbox.conftest import MakeManager
from support.alive import alive
from support.e2b_process import E2BLocal
from support.scripted_rules import model_of_rules

CONFIG: Any = {"configurable": {"thread_id": "middleware"}, "run_id": "5e9d3c1e-0000-4000-8000-000000000001"}


async def test_a_loss_in_mid_run_is_told_and_the_run_goes_on(
    make_manager: MakeManager, sandboxes: E2BLocal
) -> None:
    """The sandbox dies between two calls: the second says so and is not repeated, the third works (A8)."""

    @tool
    async def kill_it(runtime: ToolRuntime[Context]) -> str:
        """End the sandbox from outside."""
        await AsyncSandbox.kill(runtime.context.sandbox.sandbox_id, **sandboxes.options)
        return "killed"

    model = model_of_rules(
        """
        - {name: one, when: {after: human}, say: "1", call: {tool: kill_it, args: {}}}
        - {name: two, when: {after: kill_it}, say: "2", call: {tool: run_command, args: {command: echo a}}}
        - name: three
          when: {after: run_command, calls: {run_command: 1}}
          call: {tool: run_command, args: {command: echo b}}
        - {name: four, when: {after: run_command}, say: "{{result}}"}
        """
    )
    agent = create_agent(
        model,
        tools=[kill_it, run_command],
        middleware=[SandboxMiddleware(make_manager())],
        context_schema=Context,
    )
    notices: list[str] = []
    asked = {"messages": [HumanMessage("go")]}
    async for mode, part in agent.astream(asked, context=Context(), stream_mode=["custom", "values"]):
        if mode == "custom" and part["type"] == "sandbox":
            notices.append(part["event"])
        elif mode == "values":
            state = part
    results = [message.text for message in state["messages"] if message.type == "tool"]
    assert LOST_IN_CALL in results[1]
    assert results[2] == "exit_code: 0\n<stdout>\nb\n</stdout>"
    assert "replaced" in notices
    assert state["sandbox_id"] == ""


async def test_a_question_pauses_and_the_answer_goes_on_in_the_same_sandbox(
    make_manager: MakeManager, sandboxes: E2BLocal
) -> None:
    """Paused at once when asked; resumed without context, the run's policy still holds: it is kept."""

    @tool
    async def ask(runtime: ToolRuntime[Context]) -> str:
        """Ask the human."""
        return str(interrupt("well?"))

    model = model_of_rules(
        """
        - {name: one, when: {after: human}, call: {tool: run_python, args: {code: "x = 41"}}}
        - {name: two, when: {after: run_python, calls: {ask: 0}}, call: {tool: ask, args: {}}}
        - {name: three, when: {after: ask}, call: {tool: run_python, args: {code: "x + 1"}}}
        - {name: four, when: {after: run_python}, say: "{{result}}"}
        """
    )
    manager = make_manager()
    agent = create_agent(
        model,
        tools=[ask, run_python],
        middleware=[SandboxMiddleware(manager)],
        context_schema=Context,
        checkpointer=InMemorySaver(),
    ).with_config(callbacks=[RunWatch(manager)])
    first = await agent.ainvoke({"messages": [HumanMessage("go")]}, CONFIG, context=Context(keep="thread"))
    assert first["__interrupt__"][0].value == "well?"
    (info,) = await alive(sandboxes, thread="middleware")
    assert info.state.value == "paused"
    resumed = CONFIG | {"run_id": "5e9d3c1e-0000-4000-8000-000000000002"}
    last = await agent.ainvoke(Command(resume="yes"), resumed)
    assert "42" in last["messages"][-1].text
    assert last["sandbox_id"] == info.sandbox_id
    (kept,) = await alive(sandboxes, thread="middleware")
    assert (kept.sandbox_id, kept.state.value) == (info.sandbox_id, "paused")


async def test_the_model_is_sent_a_history_with_every_call_answered(make_manager: MakeManager) -> None:
    """A call left open by a cancelled run is answered before the model sees it (A55)."""
    sent: list[list[AnyMessage]] = []

    class Seeing(AgentMiddleware[Any, Any, Any]):
        async def awrap_model_call(self, request: ModelRequest[Any], handler: Any) -> Any:
            sent.append(list(request.messages))
            return await handler(request)

    agent = create_agent(
        model_of_rules("- {name: a, when: {after: human}, say: fine}"),
        tools=[run_python],
        middleware=[SandboxMiddleware(make_manager(start="lazy")), Seeing()],
        context_schema=Context,
    )
    call = {"name": "run_python", "args": {"code": "1"}, "id": "left-open"}
    history = [HumanMessage("one"), AIMessage("", tool_calls=[call]), HumanMessage("two")]
    state = await agent.ainvoke({"messages": history}, context=Context())
    assert state["messages"][-1].text == "fine"
    assert [message.type for message in sent[0]] == ["human", "ai", "tool", "human"]
