"""Finding known values in text, also when a value is cut in two by a stream.

Only what is known, and only as it is: a value that was encoded (base64, reversed, split by spaces) passes.
"""

import json
import re
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

MIN_CHARS = 8
"""Shorter values are left: `1` or `dev` stands in too many places that are no secret."""
MAX_HANDED_OUT = 1_000
"""So many values that sandboxes were given are remembered, the oldest forgotten first."""
CHARS_AT_ONCE = 65_536
"""A long text is searched in such pieces: within one, no other thread of this process gets its turn."""


class Secrets:
    """The values that must not be shown, and taking them out. Any thread may use it.

    Args:
        known: called at each use for the values of this moment, by the name that is shown in their place.
    """

    def __init__(self, known: Callable[[], Mapping[str, str]]) -> None:
        self._known = known
        self._handed_out: OrderedDict[str, str] = OrderedDict()
        self._forms = _Forms({})
        self._lock = threading.Lock()

    def remember(self, values: Mapping[str, str]) -> None:
        """Know values from now on: those a sandbox was just given, wherever they came from."""
        with self._lock:
            for name, value in values.items():
                self._handed_out[value] = name
                self._handed_out.move_to_end(value)
            while len(self._handed_out) > MAX_HANDED_OUT:
                self._handed_out.popitem(last=False)

    def redacted(self, text: str) -> str:
        """Return the text with each known value replaced by its name in brackets.

        One of megabytes takes tens of milliseconds for each: hand it to a thread.
        """
        if len(text) <= CHARS_AT_ONCE:
            return self.current().redacted(text)[0]
        pieces = Pieces(self)
        starts = range(0, len(text), CHARS_AT_ONCE)
        return "".join([*(pieces.feed(text[at : at + CHARS_AT_ONCE]) for at in starts), pieces.end()])

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

    def current(self) -> "_Forms":
        """Return the values of this moment."""
        known = {value: name for name, value in self._known().items()}
        with self._lock:
            values = known | self._handed_out
            if values != self._forms.made_for:
                self._forms = _Forms(values)
            return self._forms


class _Forms:
    """Values in the forms they may stand in, and where a text holds one.

    Args:
        values: each with its name.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self.made_for = values
        self._names = {form: name for value, name in values.items() for form in _forms(value)}
        self._failures = {form: _failures(form) for form in self._names}
        # By what they begin with, the longest first: of two values that begin alike, the whole one is taken
        # out. A pattern of whole values would try each of them at each place of a text.
        self._by_start: defaultdict[str, list[str]] = defaultdict(list)
        for form in sorted(self._names, key=len, reverse=True):
            self._by_start[form[:MIN_CHARS]].append(form)
        self._start = re.compile(_any_of(self._by_start)) if self._by_start else None

    def redacted(self, text: str, *, goes_on: bool = False) -> tuple[str, str]:
        """Return the text with each value replaced by its name in brackets, and what cannot be judged yet.

        Of a text that goes on, that is an end that may be the beginning of a value. A value that is whole is
        not cut: what looks like another's beginning inside it is not.
        """
        made, end = [], 0
        beginnings = (_common(text, form, failures) for form, failures in self._failures.items())
        cut = len(text) - (max(beginnings, default=0) if goes_on else 0)
        for start, form in self._found(text):
            if start >= cut:
                break
            made += [text[end:start], f"[{self._names[form]} redacted]"]
            end = start + len(form)
        cut = max(cut, end)
        return "".join([*made, text[end:cut]]), text[cut:]

    def _found(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield the values that a text holds, and where."""
        at = 0
        while self._start and (found := self._start.search(text, at)):
            at = found.start()
            form = next((form for form in self._by_start[found[0]] if text.startswith(form, at)), "")
            if form:
                yield at, form
            at += len(form) or 1


def _any_of(words: Iterable[str]) -> str:
    """Return a pattern for one of the words, by their first character: few are tried at each place."""
    by_first: defaultdict[str, list[str]] = defaultdict(list)
    for word in words:
        by_first[word[0]].append(re.escape(word[1:]))
    return "|".join(f"{re.escape(first)}(?:{'|'.join(rests)})" for first, rests in by_first.items())


def _forms(value: str) -> set[str]:
    """Return how a value may stand in a text that nobody encoded on purpose."""
    value = value.strip()
    if len(value) < MIN_CHARS:
        return set()
    in_json = (json.dumps(value, ensure_ascii=plain)[1:-1] for plain in (True, False))
    return {value, quote(value, safe=""), *in_json}


def _failures(form: str) -> list[int]:
    """Return for each beginning of `form` how long the longest other is that it ends with.

    Source: Knuth, Morris, Pratt, "Fast pattern matching in strings".
    """
    table, size = [0], 0
    for char in form[1:]:
        while size and form[size] != char:
            size = table[size - 1]
        size += form[size] == char
        table.append(size)
    return table


def _common(text: str, form: str, failures: list[int]) -> int:
    """Return the length of the longest beginning of `form`, not all of it, that `text` ends with."""
    tail = text[max(len(text) - len(form) + 1, 0) :]
    # Most texts hold nothing of most values; then only the last few characters may begin one.
    at = tail.find(form[:4])
    size = 0
    for char in tail[at if at >= 0 else max(len(tail) - 3, 0) :]:
        while size and form[size] != char:
            size = failures[size - 1]
        size += form[size] == char
    return size


class Pieces:
    """One stream of output, redacted as it comes.

    The end of a piece that may be the beginning of a value is held back until the next piece shows.
    """

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return what can be shown so far; it may be empty."""
        forms = self._secrets.current()
        shown, self._held = forms.redacted(self._held + piece, goes_on=True)
        return shown

    def end(self) -> str:
        """Return what was held back, now that nothing follows."""
        rest, self._held = self._held, ""
        return self._secrets.current().redacted(rest)[0]
