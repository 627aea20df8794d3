"""Talk to the graph `agent`."""

from agent.cli import exits
from agent.cli.approval import Decide
from agent.cli.follow import Follower, Left, View
from agent.cli.repair import context
from agent.cli.screen import EndOfInput, Screen
from agent.cli.session import Session
from agent.client import Driver, Failed, Interrupted, Outcome

GRAPH = "agent"
_LEAVE = frozenset({"/quit", "/exit"})


class Chat:
    """A conversation on one thread.

    Args:
        screen: where to write and ask.
        session: the connection.
        view: shows the events.
        decide: answers what the graph asks.
        model: chat model for these runs; default the server's.
    """

    def __init__(
        self,
        screen: Screen,
        session: Session,
        *,
        view: View,
        decide: Decide,
        model: str = "",
    ) -> None:
        self._screen = screen
        self._session = session
        self._decide = decide
        self._view = view
        self._context = context(model)

    def talk(self, thread_id: str | None, message: str | None) -> int:
        """Say one message, or go on until the user leaves; return the exit code.

        Args:
            thread_id: an earlier conversation; default a new one.
            message: default asks for messages, one after the other.
        """
        try:
            driver = self._driver(thread_id)
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
        driver = self._session.server.thread(graph or GRAPH, thread_id, context=self._context)
        # A message to a thread that waits for an answer would drop the question without a word.
        pending = self._session.run(driver.pending())
        answers = self._decide(pending) if pending else None
        if answers:
            self._follower(driver).follow(driver.answer(answers), "Going on with the answer")
        return driver

    def _turns(self, driver: Driver) -> int:
        while True:
            self._screen.line()
            try:
                said = self._screen.ask("you> ")
            except EndOfInput:
                return exits.OK
            if said in _LEAVE:
                return exits.OK
            if said:
                try:
                    self._turn(driver, said)
                except Left as left:
                    if not left.cancelled:
                        raise

    def _turn(self, driver: Driver, message: str) -> int:
        stream = driver.start({"messages": [{"role": "user", "content": message}]})
        return of_chat(self._follower(driver).follow(stream, "Thinking" if self._screen.is_terminal else ""))

    def _follower(self, driver: Driver) -> Follower:
        return Follower(self._session, driver, screen=self._screen, view=self._view, decide=self._decide)


def of_chat(outcome: Outcome) -> int:
    """Return the exit code for how a run of `agent` ended."""
    if isinstance(outcome, Interrupted):
        return exits.FAILED
    if isinstance(outcome, Failed):
        return exits.INTERRUPTED if outcome.status == "cancelled" else exits.PLATFORM
    return exits.OK
