"""The table of a sandbox's life, against a model of what must never happen."""

from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agent.sandbox.lifecycle import (
    MAX_CREATIONS,
    TRANSITIONS,
    Action,
    Event,
    Life,
    LifecycleError,
    Phase,
    diagram,
    plan,
    seen,
)

ASKING = {Action.LOOK, Action.SEEK, Action.CONNECT, Action.CREATE, Action.KILL}


class OneSandbox(RuleBasedStateMachine):
    """A service with sandboxes of ours and of others beside the table that decides about them."""

    def __init__(self) -> None:
        super().__init__()
        self.life = Life()
        self.alive: set[int] = set()
        self.foreign: set[int] = {0}
        self.known: int | None = None
        self.looked = False
        self.made = 0
        self.losses = 0
        self.died = 0
        self.failed = False

    @rule(event=st.sampled_from([Event.NEEDED, Event.NEEDED_AGAIN]), reachable=st.booleans())
    def work(self, event: Event, reachable: bool) -> None:
        """A tool needs the sandbox."""
        self.drive(event, reachable)

    @rule(event=st.sampled_from([Event.FINISHED, Event.TURN_ENDED, Event.ASKED]), reachable=st.booleans())
    def leave(self, event: Event, reachable: bool) -> None:
        """The run ends, or waits."""
        self.drive(event, reachable)

    @precondition(lambda self: self.known in self.alive)
    @rule()
    def die(self) -> None:
        """The sandbox is killed by someone else."""
        self.alive.discard(self.known)  # type: ignore[arg-type]
        self.died += 1

    @precondition(lambda self: self.life.phase is Phase.LIVE and self.known not in self.alive)
    @rule(reachable=st.booleans())
    def notice(self, reachable: bool) -> None:
        """Work finds the sandbox gone."""
        self.drive(Event.GONE, reachable)

    @rule(copied=st.booleans())
    def next_run(self, copied: bool) -> None:
        """A new run begins with the id in state, perhaps one copied from another thread."""
        if copied:
            self.known = 0
        self.life = seen(Life(), "id" if self.known is not None else "", live=False)
        self.looked = False

    def drive(self, event: Event | None, reachable: bool) -> None:
        """Do what the table says until it says nothing more."""
        self.failed = False
        while event is not None:
            before = self.life.phase
            self.life, actions = plan(self.life, event)
            event = None
            for action in actions:
                event = self.do(action, reachable)
            assert event is None or actions[-1] in ASKING, (before, actions)

    def do(self, action: Action, reachable: bool) -> Event | None:
        """Do one thing to the service; the assertions are what must never happen."""
        if action in ASKING and not reachable:
            return Event.UNREACHABLE
        match action:
            case Action.LOOK:
                self.looked = True
                if self.known in self.foreign:
                    return Event.SEEN_FOREIGN
                return Event.SEEN_OURS if self.known in self.alive else Event.GONE
            case Action.SEEK:
                self.known = next(iter(self.alive), None)
                self.looked = True
                return Event.NONE_FOUND if self.known is None else Event.SEEN_OURS
            case Action.CONNECT:
                assert self.looked
                assert self.known not in self.foreign
                return Event.CONNECTED
            case Action.CREATE:
                assert self.known not in self.alive
                self.made += 1
                self.known = self.made
                self.alive.add(self.made)
                self.looked = True
                return Event.CREATED
            case Action.KILL:
                assert self.looked
                assert self.known not in self.foreign
                self.alive.discard(self.known)  # type: ignore[arg-type]
                return Event.KILLED
            case Action.ANNOUNCE_LOSS:
                assert self.known not in self.alive
                assert self.known not in self.foreign
                self.losses += 1
                self.known = None
            case Action.FORGET:
                self.known = None
            case Action.FAIL:
                self.failed = True
        return None

    @invariant()
    def at_rest_between_events(self) -> None:
        """No step is left half-done."""
        assert self.life.phase in {Phase.ABSENT, Phase.CLAIMED, Phase.LIVE}

    @invariant()
    def a_loss_is_announced_at_most_once(self) -> None:
        """There are never more announcements than deaths: a normal end is no loss."""
        assert self.losses <= self.died

    @invariant()
    def creations_are_bounded(self) -> None:
        """A run makes no more sandboxes than it may."""
        assert self.life.creations <= MAX_CREATIONS


TestOneSandbox = OneSandbox.TestCase


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("event", Event)
def test_plan_refuses_what_cannot_happen(phase: Phase, event: Event) -> None:
    """An event that has no place in the table is a precise error, and changes nothing."""
    life = Life(phase)
    if (phase, event) in TRANSITIONS:
        assert plan(life, event)[0].phase in Phase
        return
    with pytest.raises(LifecycleError, match=f"a sandbox that is {phase} cannot be {event}"):
        plan(life, event)
    assert life == Life(phase)


def test_every_phase_is_reached_and_left() -> None:
    """No phase of the table is a dead end or out of reach."""
    reached = {after for after, _ in TRANSITIONS.values()}
    left = {phase for phase, _ in TRANSITIONS}
    assert reached == left == set(Phase)


def test_diagram_shows_every_transition() -> None:
    """The documentation's picture is the table."""
    assert diagram().count("-->") == len(TRANSITIONS) + 1
    page = Path(__file__).parents[2] / "docs" / "sandbox-lifecycle.md"
    assert f"```mermaid\n{diagram()}```" in page.read_text()
