"""What the programs of `inside/` answer, as it is checked: whatever runs in a sandbox may answer for them."""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field, TypeAdapter, with_config
from typing_extensions import TypedDict

MAX_ENTRIES = 2_000
"""Of a listing or a search; the tools ask for no more."""
MAX_NAMES = 20

Count = Annotated[int, Field(ge=0, lt=2**53)]
Name = Annotated[str, Field(max_length=20_000)]
"""A path: 4 KB of it, should every byte be told as an escape."""
Encoding = Annotated[str, Field(max_length=100)]
"""The name of one, and a word on it; empty for UTF-8."""
Seconds = Annotated[float, Field(gt=-1e12, lt=1e12, allow_inf_nan=False)]
"""Less than none where the sandbox's clock was set back."""
Unreadable = Annotated[list[Name], Field(max_length=MAX_NAMES)]


@with_config(strict=True)
class Image(TypedDict):
    """An image file."""

    kind: Literal["image"]
    size: Count
    mime: Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
    data: str


@with_config(strict=True)
class Binary(TypedDict):
    """A file that is no text."""

    kind: Literal["binary"]
    size: Count
    data: Annotated[str, Field(max_length=100)]


@with_config(strict=True)
class Bytes(TypedDict):
    """A part of a text file, by bytes."""

    kind: Literal["bytes"]
    size: Count
    start: Count
    end: Count
    text: str
    encoding: NotRequired[Encoding]


@with_config(strict=True)
class Lines(TypedDict):
    """A part of a text file, by lines."""

    kind: Literal["text"]
    size: Count
    first: Count
    last: Count
    total: Count
    text: str
    cut: bool
    end: Count
    encoding: NotRequired[Encoding]


@with_config(strict=True)
class Entry(TypedDict):
    """An entry of a folder."""

    path: Name
    kind: Literal["file", "folder", "link", "other"]
    size: Count


@with_config(strict=True)
class Entries(TypedDict):
    """What a folder holds."""

    entries: Annotated[list[Entry], Field(max_length=MAX_ENTRIES)]
    total: Count


@with_config(strict=True)
class Found(Entries):
    """What a pattern found."""

    unreadable: Unreadable


@with_config(strict=True)
class Match(TypedDict):
    """A line that a search found."""

    path: Name
    line: Count
    text: Annotated[str, Field(max_length=400)]


@with_config(strict=True)
class Matches(TypedDict):
    """What a search found."""

    matches: Annotated[list[Match], Field(max_length=MAX_ENTRIES)]
    total: Count
    searched: Count
    binary: Count
    unreadable: Unreadable


@with_config(strict=True)
class Written(TypedDict):
    """A file was written."""

    size: Count
    encoding: NotRequired[Encoding]
    crlf: NotRequired[bool]


@with_config(strict=True)
class Edited(TypedDict):
    """How often the text to replace was found, and where first."""

    found: Count
    lines: Annotated[list[Count], Field(max_length=MAX_NAMES)]
    crlf: bool
    kept: NotRequired[bool]
    encoding: NotRequired[Encoding]


@with_config(strict=True)
class Deleted(TypedDict):
    """What was deleted."""

    kind: Literal["file", "folder"]


@with_config(strict=True)
class Printed(TypedDict):
    """How much each stream of a command has printed in all, in bytes."""

    stdout: Count
    stderr: Count


@with_config(strict=True)
class Polled(TypedDict):
    """How a command in the background is doing."""

    running: bool
    exit_code: Annotated[int, Field(ge=-256, le=256)] | None
    stopped: bool
    duration_s: Seconds
    stdout: str
    stderr: str
    bytes: Printed


@with_config(strict=True)
class Started(TypedDict):
    """A command was started."""


FILES: dict[str, TypeAdapter[Any]] = {
    "read": TypeAdapter(Annotated[Image | Binary | Bytes | Lines, Field(discriminator="kind")]),
    "write": TypeAdapter(Written),
    "edit": TypeAdapter(Edited),
    "list": TypeAdapter(Entries),
    "find": TypeAdapter(Found),
    "search": TypeAdapter(Matches),
    "delete": TypeAdapter(Deleted),
}
"""By operation of `inside/files.py`."""
POLLED = TypeAdapter(Polled)
STARTED = TypeAdapter(Started)
