"""Follow a run to its end: show it, ask where it asks, and let the user leave it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing
from typing import Any, Protocol

from agent.cli.questions import Answer
from agent.cli.screen import Busy, Screen
from agent.cli.session import Session
from agent.cli.visible import one_line
from agent.client import (
    Artifact,
    ClientError,
    Driver,
    Event,
    Failed,
    Finished,
    Interrupt,
    Interrupted,
    Outcome,
    ProtocolError,
    Reconnecting,
    ThreadAccount,
)

_CANCEL_S = 10.0
_WATCH_S = 0.2
_MOST_RUNS = 1000  # that answers start: where nobody is asked, a server could go on for ever
_MOST_LOST = 3  # in a row: a server that loses each question will lose the next

Stream = AsyncGenerator[Event, None]


class View(Protocol):
    """Shows the events of a run."""

    def follow(self, busy: Busy | None) -> None:
        """Send what is going on now to a spinner, or to none."""

    def show(self, event: Event) -> None:
        """Show one event."""

    def takes(self, artifact: Artifact) -> bool:
        """Whether to fetch an artifact's bytes for this view."""

    def take(self, artifact: Artifact, data: bytes) -> None:
        """Show an artifact that was fetched."""


class Decider(Protocol):
    """Answers questions; None leaves them open."""

    def __call__(self, questions: Sequence[Interrupt], /) -> dict[str, Answer] | None:
        """Return the answer to each question by its id."""


class Left(KeyboardInterrupt):
    """The user has left a run; what becomes of it has been said."""

    def __init__(self, *, cancelled: bool = False) -> None:
        super().__init__()
        self.cancelled = cancelled


class Follower:
    """Follows runs of one thread.

    Args:
        session: the connection.
        driver: the thread.
        screen: where to ask.
        view: shows the events.
        decide: gives the answers.
        owned: the server is this command's own and ends with it, so that a run cannot be left to go on.
        watch: raises when there is no use in waiting any longer, such as for a server that has ended; asked
            several times a second.
        deadline_s: limit of each run that an answer starts, in seconds; default none.
    """

    def __init__(
        self,
        session: Session,
        driver: Driver,
        *,
        screen: Screen,
        view: View,
        decide: Decider,
        owned: bool = False,
        watch: Callable[[], None] | None = None,
        deadline_s: float | None = None,
    ) -> None:
        self._session = session
        self._driver = driver
        self._screen = screen
        self._view = view
        self._decide = decide
        self._owned = owned
        self._watch = watch
        self._deadline_s = deadline_s

    def follow(self, stream: Stream, doing: str = "") -> Outcome:
        """Follow a run and everything that its answers start.

        Args:
            stream: an unstarted stream of the driver.
            doing: what the spinner says until the run says something itself.

        Returns:
            How it ended; `Interrupted` when a question was left open.

        Raises:
            Left: the user has left; the run was cancelled or goes on, as was said.
            ClientError: see `Driver.start`.
            Exception: what `watch` raised.
        """
        answers: dict[str, Answer] | None = None
        lost = 0
        for _ in range(_MOST_RUNS):
            outcome = self._one_run(stream, doing)
            refused = isinstance(outcome, Failed) and answers is not None and bool(outcome.pending)
            lost = lost + 1 if outcome == Interrupted(()) else 0
            if lost > _MOST_LOST:
                self._screen.error("The server loses what the run asks, each time that it is asked again.")
                return outcome
            if lost:
                stream, doing = self._driver.ask_again(deadline_s=self._deadline_s), "Having it asked again"
                continue
            if not isinstance(outcome, Interrupted) and not (refused and self._screen.can_ask):
                return outcome
            if refused:
                self._screen.line("The answer was not taken; the question is still open.", "yellow")
            before, answers = answers, self._answers(open_questions(outcome))
            if answers is None or (refused and answers == before):  # it would be refused again
                return outcome
            stream = self._driver.answer(answers, deadline_s=self._deadline_s)
            doing = "Going on with the answer"
        problem = f"The run has asked {_MOST_RUNS:,} times and has not ended"
        raise ProtocolError(problem, self._driver.where, "The last question is open.")

    def settle(self, account: ThreadAccount) -> Outcome | None:
        """Have what a thread waits for answered, and follow what the answer starts, as `follow` does.

        Args:
            account: the thread's, which waits.

        Returns:
            How it ended; None when the question was left open, as was said.
        """
        if account.unseen:
            return self.follow(self._driver.ask_again(deadline_s=self._deadline_s), "Having it asked again")
        answers = self._decide(account.pending)
        if answers is None:
            self._view.show(Interrupted(account.pending))
            say_it_waits(self._screen, self._driver.thread_id)
            return None
        stream = self._driver.answer(answers, deadline_s=self._deadline_s)
        return self.follow(stream, "Going on with the answer")

    def _one_run(self, stream: Stream, doing: str) -> Outcome:
        while True:
            try:
                with self._screen.busy(doing) as busy:
                    self._view.follow(busy)
                    return self._session.run(self._watched(self._to_the_end(stream)))
            except KeyboardInterrupt as exc:
                self._leave_or_stay(exc)
                stream, doing = self._driver.join(), "Watching again"
            finally:
                self._view.follow(None)

    async def _watched(self, work: Coroutine[Any, Any, Outcome]) -> Outcome:
        if self._watch is None:
            return await work
        following = asyncio.create_task(work)
        try:
            while not (await asyncio.wait({following}, timeout=_WATCH_S))[0]:
                self._watch()
            return following.result()
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    async def _to_the_end(self, stream: Stream) -> Outcome:
        outcome: Any = None
        broken = False
        async with aclosing(stream) as events:
            async for event in events:
                if isinstance(event, Reconnecting):
                    if not broken:
                        where = self._session.server.url
                        reason = one_line(event.reason)
                        self._screen.line(f"  No connection to {where}: {reason}. Trying again …", "yellow")
                elif broken:
                    self._screen.line("  The connection is back.", "yellow")
                broken = isinstance(event, Reconnecting)
                self._view.show(event)
                if isinstance(event, Artifact) and self._view.takes(event):
                    await self._hand_over(event)
                outcome = event
        assert isinstance(outcome, Interrupted | Finished | Failed), "a stream ends with an outcome"
        return outcome

    async def _hand_over(self, artifact: Artifact) -> None:
        try:
            data = await self._driver.files.artifact(artifact.name)
        except ClientError as exc:
            name = one_line(artifact.title or artifact.name)
            self._screen.line(f"  {name} could not be fetched: {exc}", "yellow")
        else:
            self._view.take(artifact, data)

    def _answers(self, questions: Sequence[Interrupt]) -> dict[str, Answer] | None:
        try:
            return self._decide(questions)
        except KeyboardInterrupt as exc:
            if self._owned:
                raise
            self._screen.line()
            self._screen.line(f"The question stays open: {self._rejoin()}", "yellow")
            raise Left from exc

    def _leave_or_stay(self, interrupt: KeyboardInterrupt) -> None:
        """Ask what a Ctrl-C meant; returns when the run is to be watched on."""
        self._screen.line()
        if self._driver.unsent and not self._owned:
            self._screen.line(
                f"Your answer was not sent; the question stays open: {self._rejoin()}", "yellow"
            )
            raise Left from interrupt
        if self._owned or self._driver.run_id is None:
            self._cancel()
            raise interrupt
        if not self._screen.can_ask or not _is_ctrl_c(interrupt):
            self._screen.line(f"The run goes on: {self._rejoin()}", "yellow")
            raise Left from interrupt
        try:
            said = self._screen.ask(
                "Stop watching? [c]ancel the run, [d]etach and let it go on, Enter to stay: "
            )
        except KeyboardInterrupt as exc:
            self._screen.line()
            self._screen.line(f"The run goes on: {self._rejoin()}", "yellow")
            raise Left from exc
        if said.lower() in {"c", "cancel"}:
            self._cancel()
            self._screen.line("The run is cancelled.", "yellow")
            raise Left(cancelled=True) from interrupt
        if said.lower() in {"d", "detach"}:
            self._screen.line(f"The run goes on: {self._rejoin()}", "yellow")
            raise Left from interrupt

    def _rejoin(self) -> str:
        return f"sandbox-agent resume {self._driver.thread_id}"

    def _cancel(self) -> None:
        try:
            self._session.run(asyncio.wait_for(self._driver.cancel(), _CANCEL_S))
        except (ClientError, TimeoutError) as exc:
            self._screen.error(f"The run could not be cancelled: {exc or 'no answer'}")


def open_questions(outcome: Outcome) -> Sequence[Interrupt]:
    """Return the questions that an outcome leaves open."""
    match outcome:
        case Interrupted(interrupts=questions) | Failed(pending=questions):
            return questions
    return ()


def say_it_failed(screen: Screen, failure: Failed) -> None:
    """Say why a run failed."""
    name = f"{one_line(failure.error)}: " if failure.error else ""
    screen.error(f"The run failed: {name}{failure.message}")


def say_it_waits(screen: Screen, thread_id: str) -> None:
    """Say how to answer what a thread waits for."""
    screen.line(f"Waits for an answer: sandbox-agent resume {thread_id}", "yellow")


def _is_ctrl_c(interrupt: KeyboardInterrupt) -> bool:
    return type(interrupt) is KeyboardInterrupt  # a subclass is a signal of another kind
