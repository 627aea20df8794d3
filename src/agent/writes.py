"""What a client writes into a thread's state: refused before it is kept, or taken so that the thread goes on.

A server keeps what a `Command` updates beside the checkpoint that it was sent to, before it is applied
(langgraph 1.2.24), and applies it again whenever the thread is read or run. What cannot be applied would so
make the thread useless for good, for a new input too. Two walls stand against that: a run whose command or
input holds such a thing is refused before anything is kept, and no key minds being written more than once in
a step, which happens where two commands in turn left the same question open.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from langchain_core.messages import AnyMessage, RemoveMessage, convert_to_messages
from langgraph.callbacks import GraphCallbackHandler
from langgraph.channels import BinaryOperatorAggregate, EphemeralValue, LastValue
from langgraph.channels.base import BaseChannel
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.pregel import Pregel
from langgraph.types import Command, Overwrite, Send

from agent.errors import InputError

MAX_GOTO = 100
"""Nodes that one command may send a run to."""


def endure(graph: Pregel[Any, Any, Any, Any]) -> "WriteWatch":
    """Let the keys of a graph's state be written more than once in a step; return the graph's watch.

    Args:
        graph: compiled; its channels are replaced by such that a thread outlasts.
    """
    enduring = {}
    for name in graph.stream_channels_list:
        channel = graph.channels[name]
        if isinstance(channel, BaseChannel):
            enduring[name] = _enduring(channel)
    graph.channels.update(enduring)
    return WriteWatch(enduring)


def _enduring(channel: BaseChannel[Any, Any, Any]) -> BaseChannel[Any, Any, Any]:
    made = channel
    if type(channel) is LastValue:
        made = Newest(channel.typ, channel.key)
    elif type(channel) is EphemeralValue:
        made = EphemeralValue(channel.typ, guard=False)
    elif type(channel) is BinaryOperatorAggregate:
        made = Folded(channel.typ, _merged if channel.operator is add_messages else channel.operator)
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
        whole = [value for value in map(_overwritten, values) if value]
        if not whole:
            return super().update(values)
        blank = type(self)(self.typ, self.operator)
        self.value = self.operator(blank.value, whole[-1][0]) if blank.is_available() else whole[-1][0]
        return True


def _overwritten(value: object) -> tuple[Any] | None:
    """Return what an `Overwrite`, or one that came as JSON, puts in the place of the whole."""
    match value:
        case Overwrite(value=inner):
            return (inner,)
        case {"__overwrite__": inner, **rest} if not rest:
            return (inner,)
        case {"type": "__overwrite__", "value": inner}:
            return (inner,)
    return None


def _merged(left: Any, right: Any) -> list[AnyMessage]:
    """Merge as langgraph does, but for the removal of a message that is not there: it is done already."""
    # Also on the left there may be dicts: the development server's reader of state leaves such.
    there = convert_to_messages(left)
    known, kept = {message.id for message in there}, []
    for message in convert_to_messages(right if isinstance(right, list) else [right]):
        if isinstance(message, RemoveMessage) and message.id not in {*known, REMOVE_ALL_MESSAGES}:
            continue
        known.add(message.id)
        kept.append(message)
    merged: Any = add_messages(there, kept)  # type: ignore[arg-type]
    return list(merged)


class WriteWatch(GraphCallbackHandler):
    """Bound to a graph: `graph.with_config(callbacks=[endure(graph)])`; refuses a run before it begins.

    Args:
        channels: the keys of the graph's state.
    """

    raise_error = True
    # Before the other handlers: they are not told of a run that does not begin.
    run_inline = True

    def __init__(self, channels: Mapping[str, BaseChannel[Any, Any, Any]]) -> None:
        super().__init__()
        self._channels = channels

    async def on_chain_start(
        self,
        serialized: dict[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **_: Any,
    ) -> None:
        """Check what a run's root is begun with.

        Raises:
            InputError: it could not be applied to any state.
        """
        if parent_run_id is not None:
            return
        if isinstance(inputs, Command):
            self._check_command(inputs)
        elif isinstance(inputs, Mapping):
            self._check(inputs.items(), "input")

    def _check_command(self, command: Command[Any]) -> None:
        self._check(command._update_as_tuples(), "command.update")
        goto = command.goto if isinstance(command.goto, list | tuple) else [command.goto]
        if len(goto) > MAX_GOTO:
            raise InputError(f"command.goto names {len(goto)} nodes; at most {MAX_GOTO}")
        for to in goto:
            if isinstance(to, Send) and not isinstance(to.arg, dict | list):
                kind = type(to.arg).__name__
                raise InputError(f"command.goto sends {kind} to {to.node!r}; a node takes a map, as state is")

    def _check(self, pairs: Iterable[tuple[Any, Any]], where: str) -> None:
        for name, value in pairs:
            if str(name).startswith("__"):
                raise InputError(f"{where} is no map of the state's keys to values; nothing was run")
            if name not in self._channels:
                continue  # ignored, as langgraph does
            try:
                self._channels[name].copy().update([value])
            except Exception as exc:
                words = next(iter(str(exc).splitlines()), type(exc).__name__)[:300]
                raise InputError(f"{where}: `{name}` cannot be used ({words}); nothing was run") from None
