"""The life of a thread's sandbox, as one run sees it. Pure: no I/O, no clock, no SDK.

Rules, in order of weight:

1. A sandbox that cannot be reached may hold the only copy of someone's work: it is never replaced.
2. Only one that is certainly gone is replaced, and the loss is announced. An empty id is no loss.
3. An id from state is looked at before it is connected or killed; one that names another owner's sandbox is
   left alone and forgotten, and is no loss either.
4. A run makes at most `MAX_CREATIONS` sandboxes: when each new one dies at first use, a third would too.
5. What is ended is ended once; failing to end it never undoes what the run achieved.

`TRANSITIONS` is all there is to it; the diagram in the documentation is drawn from it.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from agent.errors import AgentError

MAX_CREATIONS = 2


class Phase(StrEnum):
    """Where the sandbox stands, to this run's knowledge."""

    ABSENT = "absent"
    """State holds no id."""
    SEEKING = "seeking"
    """State holds no id, but an earlier attempt of this thread may have left one: looking by metadata."""
    CLAIMED = "claimed"
    """State holds an id that this run has not checked; the sandbox may be paused."""
    CHECKING = "checking"
    """Looking whether the id is alive and ours."""
    WAKING = "waking"
    """Ours; being connected."""
    ADOPTING = "adopting"
    """Found by metadata; being connected."""
    CREATING = "creating"
    LIVE = "live"
    """Connected and ours."""
    CLOSING = "closing"
    """Looking whether the id that is to be ended is ours."""
    ENDING = "ending"


class Event(StrEnum):
    """What happens to it."""

    NEEDED = "needed"
    NEEDED_AGAIN = "needed again"
    """Needed by a run that goes on from an earlier one whose sandbox may not have reached state."""
    SEEN_OURS = "seen, ours"
    SEEN_FOREIGN = "seen, another owner's"
    NONE_FOUND = "none found"
    CONNECTED = "connected"
    CREATED = "created"
    GONE = "gone"
    UNREACHABLE = "unreachable"
    REFUSED = "refused"
    """The service made none: no key, a limit, an unknown template."""
    UNWANTED = "unwanted"
    """Made, but the run that asked was cancelled."""
    ASKED = "human asked"
    FINISHED = "run finished"
    TURN_ENDED = "turn ended, kept"
    KILLED = "killed"


class Action(StrEnum):
    """What is to be done about it."""

    SEEK = "seek"
    LOOK = "look"
    CONNECT = "connect"
    CREATE = "create"
    RECORD = "record"
    ANNOUNCE_LOSS = "announce loss"
    PAUSE = "pause"
    KILL = "kill"
    FORGET = "forget"
    LOG_LEAK = "log leak"
    FAIL = "fail"


P, E, A = Phase, Event, Action

TRANSITIONS: dict[tuple[Phase, Event], tuple[Phase, tuple[Action, ...]]] = {
    (P.ABSENT, E.NEEDED): (P.CREATING, (A.CREATE,)),
    (P.ABSENT, E.NEEDED_AGAIN): (P.SEEKING, (A.SEEK,)),
    (P.ABSENT, E.ASKED): (P.ABSENT, ()),
    (P.ABSENT, E.FINISHED): (P.ABSENT, ()),
    (P.ABSENT, E.TURN_ENDED): (P.ABSENT, ()),
    (P.SEEKING, E.SEEN_OURS): (P.ADOPTING, (A.CONNECT,)),
    (P.SEEKING, E.NONE_FOUND): (P.CREATING, (A.CREATE,)),
    (P.SEEKING, E.UNREACHABLE): (P.ABSENT, (A.FAIL,)),
    (P.SEEKING, E.REFUSED): (P.ABSENT, (A.FAIL,)),
    (P.ADOPTING, E.CONNECTED): (P.LIVE, (A.RECORD,)),
    # State never named it: what went meanwhile is no loss.
    (P.ADOPTING, E.GONE): (P.CREATING, (A.CREATE,)),
    (P.ADOPTING, E.UNREACHABLE): (P.ABSENT, (A.FAIL,)),
    (P.ADOPTING, E.REFUSED): (P.ABSENT, (A.FAIL,)),
    (P.CLAIMED, E.NEEDED): (P.CHECKING, (A.LOOK,)),
    (P.CLAIMED, E.NEEDED_AGAIN): (P.CHECKING, (A.LOOK,)),
    (P.CLAIMED, E.ASKED): (P.CLAIMED, ()),
    (P.CLAIMED, E.FINISHED): (P.CLOSING, (A.LOOK,)),
    (P.CLAIMED, E.TURN_ENDED): (P.CLAIMED, ()),
    (P.CHECKING, E.SEEN_OURS): (P.WAKING, (A.CONNECT,)),
    (P.CHECKING, E.SEEN_FOREIGN): (P.CREATING, (A.FORGET, A.CREATE)),
    (P.CHECKING, E.GONE): (P.CREATING, (A.ANNOUNCE_LOSS, A.CREATE)),
    (P.CHECKING, E.UNREACHABLE): (P.CLAIMED, (A.FAIL,)),
    (P.CHECKING, E.REFUSED): (P.CLAIMED, (A.FAIL,)),
    (P.WAKING, E.CONNECTED): (P.LIVE, (A.RECORD,)),
    (P.WAKING, E.GONE): (P.CREATING, (A.ANNOUNCE_LOSS, A.CREATE)),
    (P.WAKING, E.UNREACHABLE): (P.CLAIMED, (A.FAIL,)),
    (P.WAKING, E.REFUSED): (P.CLAIMED, (A.FAIL,)),
    (P.CREATING, E.CREATED): (P.LIVE, (A.RECORD,)),
    (P.CREATING, E.REFUSED): (P.ABSENT, (A.FAIL,)),
    (P.CREATING, E.UNREACHABLE): (P.ABSENT, (A.FAIL,)),
    (P.LIVE, E.NEEDED): (P.LIVE, ()),
    (P.LIVE, E.NEEDED_AGAIN): (P.LIVE, ()),
    # Traffic calls a paused sandbox that may not wake by itself "not found", too: only a look is certain.
    (P.LIVE, E.GONE): (P.CHECKING, (A.LOOK,)),
    (P.LIVE, E.UNREACHABLE): (P.CLAIMED, (A.FAIL,)),
    (P.LIVE, E.UNWANTED): (P.ENDING, (A.KILL,)),
    (P.LIVE, E.ASKED): (P.CLAIMED, (A.PAUSE,)),
    (P.LIVE, E.TURN_ENDED): (P.CLAIMED, (A.PAUSE,)),
    (P.LIVE, E.FINISHED): (P.ENDING, (A.KILL,)),
    (P.CLOSING, E.SEEN_OURS): (P.ENDING, (A.KILL,)),
    (P.CLOSING, E.SEEN_FOREIGN): (P.ABSENT, (A.FORGET,)),
    (P.CLOSING, E.GONE): (P.ABSENT, (A.FORGET,)),
    (P.CLOSING, E.UNREACHABLE): (P.ABSENT, (A.LOG_LEAK, A.FORGET)),
    (P.CLOSING, E.REFUSED): (P.ABSENT, (A.LOG_LEAK, A.FORGET)),
    (P.ENDING, E.KILLED): (P.ABSENT, (A.FORGET,)),
    (P.ENDING, E.UNREACHABLE): (P.ABSENT, (A.LOG_LEAK, A.FORGET)),
    (P.ENDING, E.REFUSED): (P.ABSENT, (A.LOG_LEAK, A.FORGET)),
}


class LifecycleError(AgentError):
    """An event that cannot happen in this phase: a mistake in this package."""


@dataclass(frozen=True, slots=True)
class Life:
    """What a run knows of its sandbox."""

    phase: Phase = Phase.ABSENT
    creations: int = 0
    """How many sandboxes this run has made."""


def plan(life: Life, event: Event) -> tuple[Life, tuple[Action, ...]]:
    """Return what the event leads to: the new life, and what is to be done, in order.

    Raises:
        LifecycleError: the event cannot happen in this phase; nothing changed.
    """
    try:
        phase, actions = TRANSITIONS[life.phase, event]
    except KeyError:
        raise LifecycleError(f"a sandbox that is {life.phase} cannot be {event}") from None
    if Action.CREATE not in actions:
        return replace(life, phase=phase), actions
    if life.creations >= MAX_CREATIONS:
        return replace(life, phase=Phase.ABSENT), (*actions[:-1], Action.FAIL)
    return Life(phase, life.creations + 1), actions


def seen(life: Life, sandbox_id: str, *, live: bool) -> Life:
    """Return the life at the start of a step: live if this run holds it, else what state's id says."""
    return replace(life, phase=Phase.LIVE if live else Phase.CLAIMED if sandbox_id else Phase.ABSENT)


def diagram() -> str:
    """Return the table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> absent"]
    for (phase, event), (after, actions) in TRANSITIONS.items():
        done = f" / {', '.join(actions)}" if actions else ""
        lines.append(f"    {phase} --> {after}: {event}{done}")
    return "\n".join(lines) + "\n"
