"""Runs of `plan_execute` for tests: graph, tools and sandbox are real, the model's mind is played."""

import io
import itertools
import re
import shlex
import subprocess
import tarfile
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.types import Command

from agent.context import Context
from support.played_model import call

CALC = {
    "calc.sh": "add() { echo $(($1 - $2)); }\ndouble() { echo $(($1 + $1 + 1)); }\n",
    "tests/run.sh": """\
. ./calc.sh
bad=0
[ "$(add 2 3)" = 5 ] || { echo "FAIL add"; bad=1; }
[ "$(double 4)" = 8 ] || { echo "FAIL double"; bad=1; }
exit $bad
""",
}
"""A project with two mistakes, and a test for each; in shell, since that starts in no time."""
FOUR = {f"{name}.sh": "echo 0\n" for name in "abcd"} | {
    "tests/run.sh": "[ $(cat [abcd].sh | tr -dc 1) = 1111 ]\n"
}
"""A project whose four files each need a step."""
TEST_COMMAND = "bash tests/run.sh"
ADD = ("calc.sh", "sed -i 's/1 - /1 + /' calc.sh")
DOUBLE = ("calc.sh", "sed -i 's/ + 1)/)/' calc.sh")
APPROVE = {"decisions": [{"type": "approve"}]}
STOP = {"decisions": [{"type": "reject"}]}


def plan(*steps: tuple[str, str]) -> dict[str, Any]:
    """Return a plan whose steps' changes are shell commands, which `Mind` carries out."""
    return {
        "summary": "Mend it.",
        "steps": [{"file": file, "change": change, "reason": "A test fails."} for file, change in steps],
    }


def edit(edited: dict[str, Any]) -> dict[str, Any]:
    """Return the answer that carries out another plan."""
    return {
        "decisions": [{"type": "edit", "edited_action": {"name": "execute_plan", "args": edited}}],
    }


def reject(words: str, **more: Any) -> dict[str, Any]:
    """Return the answer that turns a plan down."""
    return {"decisions": [{"type": "reject", "message": words, **more}]}


@dataclass
class Mind:
    """Plans what it is given to plan, and carries a step out by running its change as a command.

    The last plan is given again when there are no more.
    """

    plans: list[Any] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    """The requests for plans."""
    told: list[str] = field(default_factory=list)
    """The requests to carry out a step, one for each time the model was given it."""
    act: Callable[[str, list[BaseMessage]], AIMessage] | None = None
    """Another way to carry out a step: its request and the messages since."""

    def __call__(self, messages: list[BaseMessage]) -> AIMessage:
        """Answer a conversation."""
        human = max(i for i, message in enumerate(messages) if message.type == "human")
        request, since = str(messages[human].text), messages[human + 1 :]
        if str(messages[0].text).startswith("You plan repairs"):
            self.asked.append(request)
            planned = self.plans.pop(0) if len(self.plans) > 1 else self.plans[0]
            return planned if isinstance(planned, AIMessage) else call("Plan", **planned)
        if not since:
            self.told.append(request)
        if self.act is not None:
            return self.act(request, since)
        return run_the_change(request, since)


def run_the_change(request: str, since: list[BaseMessage]) -> AIMessage:
    """Run the step's change as a command, then report what came of it."""
    if since:
        assert isinstance(since[-1], ToolMessage)
        return AIMessage(f"Done: {str(since[-1].text).splitlines()[0]}")
    change = re.search(r"(?s)^Change: (.*)\nReason: ", request, re.M)
    assert change is not None
    return call("run_command", command=change[1])


_threads = itertools.count(1)


class Repair:
    """One thread of the graph, in this process.

    Args:
        graph: with a checkpointer.
        mind: the model.
        context: of every run of the thread; fields of `Context`.
    """

    def __init__(self, graph: Any, mind: Mind, **context: Any) -> None:
        self.graph = graph
        self.mind = mind
        self.context = Context(**context)
        self.thread_id = f"repair-{next(_threads)}-{uuid.uuid4()}"
        self.events: list[dict[str, Any]] = []

    @property
    def config(self) -> dict[str, Any]:
        """The thread's configuration, with a new run."""
        return {"configurable": {"thread_id": self.thread_id}, "run_id": uuid.uuid4()}

    async def run(self, given: Any, **config: Any) -> dict[str, Any]:
        """Run to the end or the next question, and return the state."""
        stream = self.graph.astream(
            given, self.config | config, context=self.context, stream_mode=["custom", "updates"]
        )
        async for mode, part in stream:
            if mode == "custom":
                self.events.append(part)
        return await self.values()

    async def start(self, project: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
        """Begin with a project."""
        given = {"project": CALC if project is None else project, "test_command": TEST_COMMAND}
        return await self.run(given | more)

    async def answer(self, reply: Any) -> dict[str, Any]:
        """Answer the question by its id."""
        (question,) = await self.questions()
        return await self.run(Command(resume={question.id: reply}))

    async def questions(self) -> tuple[Any, ...]:
        """Return what the thread waits for."""
        return (await self.graph.aget_state(self.config)).interrupts

    async def values(self) -> dict[str, Any]:
        """Return the state."""
        return (await self.graph.aget_state(self.config)).values

    def phases(self) -> list[str]:
        """Return the phases the run told of, in order."""
        return [event["phase"] for event in self.events if event["type"] == "progress"]


def git_applied(project: dict[str, str], diff: str, folder: Path) -> dict[str, str]:
    """Return the files that `git apply` makes of the original; bytes that are no UTF-8 as surrogates."""
    before = {path: text.encode() for path, text in project.items()}
    after = git_applied_bytes(before, diff, folder)
    return {path: data.decode("utf-8", "surrogateescape") for path, data in after.items()}


def git_applied_bytes(project: dict[str, bytes], diff: str, folder: Path) -> dict[str, bytes]:
    """Return the files that `git apply` makes of the original, whatever they hold."""
    for path, data in project.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    subprocess.run(["git", "apply", "-"], cwd=folder, input=diff.encode(), check=True)
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def packed(files: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    """Return a tar of files, whatever bytes their names are made of, and links."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz", format=tarfile.GNU_FORMAT) as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        for path, target in (links or {}).items():
            entry = tarfile.TarInfo(path)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
    return made.getvalue()


def quoted(text: str) -> str:
    """Return a text as one word of the shell."""
    return shlex.quote(text)
