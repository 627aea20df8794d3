"""Drive graphs on a LangGraph server: a small async layer on `langgraph-sdk`.

    async with Server("http://127.0.0.1:2024") as server:
        driver = await server.new_thread("plan_execute")
        async for event in driver.start({"project": files}):
            if isinstance(event, Interrupted):
                answers = {question.id: decide(question.value) for question in event.interrupts}
        async for event in driver.answer(answers):
            ...

Nothing else of this package is imported, and no environment variable is read.
"""

from agent.client.account import ThreadAccount
from agent.client.driver import Driver
from agent.client.errors import (
    BusyError,
    ClientError,
    DeadlineError,
    NotFoundError,
    ProtocolError,
    RefusedError,
    StaleAnswerError,
    StreamLostError,
    UnreachableError,
)
from agent.client.events import (
    Artifact,
    Custom,
    Event,
    Failed,
    Finished,
    Interrupt,
    Interrupted,
    Outcome,
    Progress,
    Reconnecting,
    SandboxNotice,
    Started,
    TestReport,
    Tests,
    Token,
    ToolEvent,
    Update,
)
from agent.client.server import Server, ThreadSummary
from agent.client.standing import ThreadStanding
from agent.client.transport import Limits

__all__ = [
    "Artifact",
    "BusyError",
    "ClientError",
    "Custom",
    "DeadlineError",
    "Driver",
    "Event",
    "Failed",
    "Finished",
    "Interrupt",
    "Interrupted",
    "Limits",
    "NotFoundError",
    "Outcome",
    "Progress",
    "ProtocolError",
    "Reconnecting",
    "RefusedError",
    "SandboxNotice",
    "Server",
    "StaleAnswerError",
    "Started",
    "StreamLostError",
    "TestReport",
    "Tests",
    "ThreadAccount",
    "ThreadStanding",
    "ThreadSummary",
    "Token",
    "ToolEvent",
    "UnreachableError",
    "Update",
]
