"""What a client writes into a thread's state: refused before it is kept, or taken so that the thread goes on.

A server keeps what a `Command` updates beside the checkpoint that it was sent to, before it is applied
(langgraph 1.2.24), and applies it again whenever the thread is read or run. What cannot be applied would so
make the thread useless for good, for a new input too. Two walls stand against that: a run whose command or
input holds such a thing is refused before anything is kept, and no key minds being written more than once in
a step, which happens where two commands in turn left the same question open.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, RemoveMessage, convert_to_messages
from langgraph.channels import (
    BinaryOperatorAggregate,
    DeltaChannel,
    EphemeralValue,
    LastValue,
    UntrackedValue,
)
from langgraph.channels.base import BaseChannel
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.pregel import Pregel
from langgraph.types import Command, Overwrite, Send
from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from agent.errors import InputError, one_line, problems

Graph = TypeVar("Graph", bound=Pregel[Any, Any, Any, Any])

MAX_GOTO = 100
"""Nodes that one command may send a run to."""
MAX_CALLS = 1_000
"""Calls of tools that one command may bring to where they run: all begin at once, and hold up the server."""


def enduring(graph: Graph) -> Graph:
    """Return the graph with keys of state that may be written more than once in a step.

    Args:
        graph: compiled; it stays as it is.
    """
    channels = {name: _enduring(channel) for name, channel in graph.channels.items()}
    return graph.copy({"channels": channels})


def _enduring(channel: Any) -> Any:
    """Return a channel that takes what this one takes, more than once; one of another kind as it is."""
    made = channel
    # Exactly these: what a subclass means by its own `update` is its business.
    if type(channel) is LastValue:
        made = Newest(channel.typ)
    elif type(channel) is EphemeralValue or type(channel) is UntrackedValue:
        made = type(channel)(channel.typ, guard=False)
    elif type(channel) is BinaryOperatorAggregate:
        made = _folded(channel)
    elif type(channel) is DeltaChannel:
        made = FoldedDelta(channel.reducer, channel.typ, snapshot_frequency=channel.snapshot_frequency)
    if made is not channel:
        made.key = channel.key
    return made


class Newest(LastValue[Any]):
    """The last value of a step, however many there are."""

    __slots__ = ()

    def update(self, values: Sequence[Any]) -> bool:
        """Take the last."""
        return super().update(values[-1:])


class Folded(BinaryOperatorAggregate[Any]):
    """Values put together by a reducer, which an `Overwrite` passes by; the last one of a step counts."""

    __slots__ = ()

    def update(self, values: Sequence[Any]) -> bool:
        """Put the values together; what replaces the whole must be such a whole, as the reducer judges."""
        if not (whole := _last_overwrite(values)):
            return super().update(values)
        blank = type(self)(self.typ, self.operator)
        self.value = self.operator(blank.value, whole[0]) if blank.is_available() else whole[0]
        return True


class FoldedMessages(Folded):
    """`Folded`, for langgraph's reducer of messages: all of a step are merged at once.

    Each call of a tool writes by itself. A message with 10,000 calls, merged one by one, would hold up the
    server for minutes.
    """

    __slots__ = ()

    def update(self, values: Sequence[Any]) -> bool:
        """Put the values together; a message that a step removes and writes again keeps its place."""
        if len(values) > 1 and not _last_overwrite(values):
            return super().update([[one for value in values for one in _listed(value)]])
        return super().update(values)


def _folded(channel: BinaryOperatorAggregate[Any]) -> Folded:
    reducer: Any = channel.operator
    in_a_format = isinstance(reducer, partial) and reducer.func is _IN_A_FORMAT.func
    if reducer is add_messages or in_a_format:
        return FoldedMessages(channel.typ, partial(_merged, reducer))
    return Folded(channel.typ, reducer)


_IN_A_FORMAT: Any = add_messages(format=None)  # type: ignore[call-arg]


class FoldedDelta(DeltaChannel[Any]):
    """`Folded`, for a channel that keeps what was written rather than the whole."""

    __slots__ = ()

    def update(self, values: Sequence[Any]) -> bool:
        """Put the values together, as `Folded` does."""
        if not (whole := _last_overwrite(values)):
            return super().update(values)
        # Kept is what was written, so that it is only looked at here: a reading takes it as it stands.
        self.reducer(self.typ(), [] if whole[0] is None else [whole[0]])
        return super().update([Overwrite(whole[0])])


def _last_overwrite(values: Sequence[Any]) -> tuple[Any] | None:
    """Return what the last `Overwrite`, or one that came as JSON, puts in the place of the whole."""
    for value in reversed(values):
        match value:
            case Overwrite(value=inner):
                return (inner,)
            case {"__overwrite__": inner, **rest} if not rest:
                return (inner,)
            case {"type": "__overwrite__", "value": inner}:
                return (inner,)
    return None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _merged(merge: Callable[[Any, Any], Any], left: Any, right: Any) -> list[AnyMessage]:
    """Merge messages as langgraph does, but for removals.

    One of a message that is not there is done already. And behind one of all messages langgraph takes others
    for messages to keep, which no model can be sent.
    """
    # Also on the left there may be dicts: the development server's reader of state leaves such.
    there = convert_to_messages(left)
    written = convert_to_messages(_listed(right))
    for index in range(len(written) - 1, -1, -1):
        if isinstance(written[index], RemoveMessage) and written[index].id == REMOVE_ALL_MESSAGES:
            there, written = [], written[index + 1 :]
            break
    known, kept = {message.id for message in there}, []
    for message in written:
        if not isinstance(message, RemoveMessage) or message.id in known:
            known.add(message.id)
            kept.append(message)
    return list(merge(there, kept))


@with_config(ConfigDict(extra="allow"))
class SentCall(TypedDict):
    """A call of a tool, as langgraph sends it to the node `tools`."""

    name: str
    args: dict[str, Any]
    id: str


_CALLS = TypeAdapter(list[SentCall])


class WriteCheck:
    """Checks what a run is begun with: `AnswerWatch(WriteCheck(graph))`.

    It knows no state: a reducer of one's own that cannot take a value where nothing is yet has it refused.

    Args:
        graph: compiled; the keys of its state.
    """

    def __init__(self, graph: Pregel[Any, Any, Any, Any]) -> None:
        self._channels = graph.channels
        schema = getattr(getattr(graph, "builder", None), "state_schema", None)
        self._required: frozenset[str] = getattr(schema, "__required_keys__", frozenset())

    def __call__(self, inputs: Any) -> None:
        """Check an input or a command.

        Raises:
            InputError: it could not be applied to any state; nothing is kept and nothing was run.
        """
        if isinstance(inputs, Command):
            calls = self._check(inputs._update_as_tuples(), "command.update")
            calls += self._check_goto(inputs.goto if isinstance(inputs.goto, list | tuple) else [inputs.goto])
            if calls > MAX_CALLS:
                raise InputError(f"this command brings {calls} calls of tools; at most {MAX_CALLS}")
        elif isinstance(inputs, Mapping):
            self._check(inputs.items(), "input")

    def _check_goto(self, goto: Sequence[Any]) -> int:
        """Return how many calls come with it."""
        if len(goto) > MAX_GOTO:
            raise InputError(f"command.goto names {len(goto)} nodes; at most {MAX_GOTO}")
        sent = [to for to in goto if isinstance(to, Send)]
        return sum(self._check_sent(to.arg, f"command.goto: what is sent to {to.node!r:.100}") for to in sent)

    def _check_sent(self, sent: Any, where: str) -> int:
        calls: Any
        state: Any
        match sent:
            case {"__type": "tool_call_with_context", **rest}:
                calls, state = [rest.get("tool_call")], rest.get("state")
            case [_, *_]:
                calls, state = sent, {}
            case {**state} if missing := sorted(self._required - state.keys()):
                raise InputError(f"{where} lacks `{missing[0]}`; nothing was run")
            case _:
                calls, state = [], sent
        if not isinstance(state, Mapping):
            raise InputError(f"{where} is no map of the state's keys to values; nothing was run")
        try:
            _CALLS.validate_python(calls)
        except ValidationError as exc:
            raise InputError(
                f"{where} is no call of a tool ({problems(exc, 'call')}); nothing was run"
            ) from None
        in_state = self._check(((key, value) for key, value in state.items() if key != "__type"), where)
        return len(calls) or in_state

    def _check(self, pairs: Iterable[tuple[Any, Any]], where: str) -> int:
        """Return how many calls the message with most of them makes."""
        most = 0
        for name, value in pairs:
            if str(name).startswith("__"):
                raise InputError(f"{where} is no map of the state's keys to values; nothing was run")
            channel = self._channels.get(name)
            if not isinstance(channel, BaseChannel):
                continue  # ignored, as langgraph does
            blank = channel.copy()
            try:
                blank.update([value])
            except InputError as exc:
                raise InputError(f"{where}: {exc}; nothing was run") from None
            except Exception as exc:
                words = one_line(exc) or type(exc).__name__
                raise InputError(
                    f"{where}: `{name}` cannot be used ({words:.300}); nothing was run"
                ) from None
            made = blank.get() if blank.is_available() else None
            sizes = [len(one.tool_calls) for one in _listed(made) if isinstance(one, AIMessage)]
            most = max([most, *sizes])
        return most
