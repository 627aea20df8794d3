"""Finding known values in text, also when a value is cut in two by a stream.

Only what is known, and only as it is: a value that was encoded (base64, reversed, split by spaces) passes.
"""

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote

from agent.overlap import overlap

MIN_CHARS = 8
"""Shorter values are left: `1` or `dev` stands in too many places that are no secret."""
MAX_HANDED_OUT = 1_000
"""So many values that sandboxes were given are remembered, the oldest forgotten first."""


class Secrets:
    """The values that must not be shown, and taking them out.

    Args:
        known: called at each use for the values of this moment, by the name that is shown in their place.
    """

    def __init__(self, known: Callable[[], Mapping[str, str]]) -> None:
        self._known = known
        self._handed_out: OrderedDict[str, str] = OrderedDict()
        self._made_for: Mapping[str, str] = {}
        self._forms: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    def remember(self, values: Mapping[str, str]) -> None:
        """Know values from now on: those a sandbox was just given, wherever they came from."""
        for name, value in values.items():
            self._handed_out[value] = name
            self._handed_out.move_to_end(value)
        while len(self._handed_out) > MAX_HANDED_OUT:
            self._handed_out.popitem(last=False)

    def redacted(self, text: str) -> str:
        """Return the text with each known value replaced by its name in brackets."""
        pattern = self._current()
        return pattern.sub(self._replacement, text) if pattern else text

    def redacted_deeply(self, data: Any) -> Any:
        """Return plain data with every string in it redacted, keys included."""
        match data:
            case str():
                return self.redacted(data)
            case dict():
                return {self.redacted_deeply(key): self.redacted_deeply(value) for key, value in data.items()}
            case list() | tuple():
                return type(data)(self.redacted_deeply(item) for item in data)
            case _:
                return data

    def shown_so_far(self, text: str) -> int:
        """Return how many characters of a text that goes on can be judged already.

        The rest may be the beginning of a value. A value that is whole is not cut: what looks like another's
        beginning inside it is not.
        """
        pattern = self._current()
        cut = len(text) - max((overlap(text, form) for form in self._forms), default=0)
        for found in pattern.finditer(text) if pattern else ():
            if found.start() < cut < found.end():
                return found.end()
        return cut

    def _replacement(self, found: re.Match[str]) -> str:
        return f"[{self._forms[found[0]]} redacted]"

    def _current(self) -> re.Pattern[str] | None:
        values = {value: name for name, value in self._known().items()} | self._handed_out
        if values != self._made_for:
            self._made_for = values
            self._forms = {form: name for value, name in values.items() for form in _forms(value)}
            self._pattern = _any_of(self._forms) if self._forms else None
        return self._pattern


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    """Return what finds one of many words: sorted by how they begin, most are passed over at a glance."""
    by_start: dict[str, list[str]] = {}
    # The longest first: of two that begin alike, the whole one is found.
    for word in sorted(words, key=len, reverse=True):
        by_start.setdefault(word[0], []).append(word[1:])
    starts = (f"{re.escape(start)}(?:{'|'.join(map(re.escape, rests))})" for start, rests in by_start.items())
    return re.compile("|".join(starts))


def _forms(value: str) -> set[str]:
    """Return how a value may stand in a text that nobody encoded on purpose."""
    value = value.strip()
    if len(value) < MIN_CHARS:
        return set()
    in_json = (json.dumps(value, ensure_ascii=plain)[1:-1] for plain in (True, False))
    return {value, quote(value, safe=""), *in_json}


class Pieces:
    """One stream of output, redacted as it comes.

    The end of a piece that may be the beginning of a value is held back until the next piece shows.
    """

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return what can be shown so far; it may be empty."""
        text = self._held + piece
        cut = self._secrets.shown_so_far(text)
        self._held = text[cut:]
        return self._secrets.redacted(text[:cut])

    def end(self) -> str:
        """Return what was held back, now that nothing follows."""
        rest, self._held = self._held, ""
        return self._secrets.redacted(rest)
