"""Talk to the graph `agent`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from typer import BadParameter

from agent.cli import exits
from agent.cli.approval import Decide
from agent.cli.follow import Follower, Left, View, open_questions, say_it_waits
from agent.cli.screen import EndOfInput, Screen
from agent.cli.session import Session
from agent.cli.visible import one_line
from agent.client import Driver, Failed, Finished, Interrupted, Outcome

GRAPH = "agent"
MAX_UPLOAD_BYTES = 50_000_000
_LEAVE = frozenset({"/quit", "/exit"})


class Chat:
    """A conversation on one thread.

    Args:
        screen: where to write and ask.
        session: the connection.
        view: shows the events.
        decide: answers what the graph asks.
        context: sent with each run; what is empty is left to the server.
    """

    def __init__(
        self,
        screen: Screen,
        session: Session,
        *,
        view: View,
        decide: Decide,
        context: Mapping[str, Any],
    ) -> None:
        self._screen = screen
        self._session = session
        self._decide = decide
        self._view = view
        self._context = {name: value for name, value in context.items() if value}
        self._uploaded: list[str] = []
        self._waits = False

    def talk(
        self, thread_id: str | None, message: str | None, files: Mapping[str, bytes] | None = None
    ) -> int:
        """Say one message, or go on until the user leaves; return the exit code.

        Args:
            thread_id: an earlier conversation; default a new one. A thread of another graph is refused.
            message: default asks for messages, one after the other.
            files: put into the sandbox first; the agent is told of them with the first message.
        """
        try:
            driver = self._driver(thread_id)
            if driver.graph != GRAPH:
                self._refuse(driver)
                return exits.USAGE
            if not self._settled(driver):
                if message is not None:
                    self._screen.line("What you said was not sent.", "yellow")
                return exits.FAILED
            self._upload(driver, files or {})
            if message is not None:
                return self._turn(driver, message)
            self._screen.line(f"thread {driver.thread_id}; /quit or Ctrl-D leaves", "dim")
            return self._turns(driver)
        except Left:
            return exits.INTERRUPTED

    def _driver(self, thread_id: str | None) -> Driver:
        if thread_id is None:
            return self._session.run(self._session.server.new_thread(GRAPH, context=self._context))
        graph = self._session.run(self._session.server.graph_of(thread_id))
        return self._session.server.thread(graph or GRAPH, thread_id, context=self._context)

    def _refuse(self, driver: Driver) -> None:
        """Say why nothing is said on a thread: a message would be the input of another graph's new run."""
        thread = driver.thread_id
        self._screen.error(
            f"Nothing was said: thread {thread} belongs to the graph {one_line(driver.graph)}, and chat "
            f"talks to {GRAPH}. `sandbox-agent show {thread}` shows it, "
            f"`sandbox-agent resume {thread}` goes on with it."
        )

    def _settled(self, driver: Driver) -> bool:
        """Have what the thread waits for answered: a message would drop the question without a word."""
        account = self._session.run(driver.account())
        if not account.waits:
            return True
        outcome = self._follower(driver).settle(account)
        if outcome is None:
            return False
        of_chat(self._screen, outcome, driver.thread_id)
        return not open_questions(outcome)

    def _upload(self, driver: Driver, files: Mapping[str, bytes]) -> None:
        for name, data in files.items():
            with self._screen.busy(f"Uploading {name}"):
                path = self._session.run(driver.files.upload(name, data))
            self._screen.line(f"  {name}: {len(data):,} bytes, {one_line(path)} in the sandbox", "dim")
            self._uploaded.append(path)

    def _turns(self, driver: Driver) -> int:
        while True:
            self._screen.line()
            try:
                said = self._screen.ask("you> ")
            except EndOfInput:
                return exits.OK
            if said in _LEAVE:
                return exits.OK
            if not said:
                continue
            try:
                self._turn(driver, said)
                if self._waits:
                    return exits.FAILED
            except Left as left:
                if not left.cancelled:
                    raise

    def _turn(self, driver: Driver, message: str) -> int:
        if self._uploaded:
            message = f"{message}\n\nUploaded into the sandbox: {', '.join(self._uploaded)}"
            self._uploaded.clear()
        said = message.encode(
            "utf-8", "replace"
        ).decode()  # bytes that are no text came as halves of surrogates
        stream = driver.start({"messages": [{"role": "user", "content": said}]})
        outcome = self._follower(driver).follow(stream, "Thinking" if self._screen.is_terminal else "")
        self._waits = isinstance(outcome, Interrupted) or bool(open_questions(outcome))
        return of_chat(self._screen, outcome, driver.thread_id)

    def _follower(self, driver: Driver) -> Follower:
        return Follower(self._session, driver, screen=self._screen, view=self._view, decide=self._decide)


def of_chat(screen: Screen, outcome: Outcome, thread_id: str) -> int:
    """Return the exit code for how a run of `agent` ended; say so when it waits for an answer.

    One that ends without a whole answer has failed, and has said why.
    """
    if open_questions(outcome):
        say_it_waits(screen, thread_id)
    if isinstance(outcome, Interrupted):
        return exits.FAILED
    if isinstance(outcome, Failed):
        return exits.INTERRUPTED if outcome.status == "cancelled" else exits.PLATFORM
    if isinstance(outcome, Finished) and outcome.no_answer:
        return exits.FAILED
    return exits.OK


def files_named(paths: Sequence[Path]) -> dict[str, bytes]:
    """Read the files to upload, by their names.

    Raises:
        BadParameter: one cannot be read, is too large, or has the name of another.
    """
    files: dict[str, bytes] = {}
    for path in paths:
        if path.name in files:
            raise BadParameter(f"two files are called {path.name}", param_hint="--upload")
        try:
            if path.stat().st_size > MAX_UPLOAD_BYTES:
                raise BadParameter(f"{path}: at most {MAX_UPLOAD_BYTES:,} bytes", param_hint="--upload")
            files[path.name] = path.read_bytes()
        except OSError as exc:
            raise BadParameter(f"{path} cannot be read: {exc.strerror}", param_hint="--upload") from exc
    return files
