"""A unified diff between two trees of files that `git apply` takes, whatever the files are named."""

import base64
import difflib
import hashlib
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping

from agent.repair.changes import readable, text_of

# By newline alone: str.splitlines also splits at form feeds and others that a patch keeps inside a line.
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_END = "\n"
_NO_NEWLINE = "\\ No newline at end of file\n"
_SPECIAL = re.compile('["\\\\\x00-\x1f\x7f\udc80-\udcff]')
_MAX_LINES = 20_000
"""Of a file that is compared line by line."""
_MAX_PAIRS = 4_000_000
"""Of its lines before times after, from the first that differs to the last: so the time grows."""


def unified_diff(
    before: Mapping[str, bytes | str],
    after: Mapping[str, bytes | str],
    *,
    executable_before: Collection[str] = (),
    executable_after: Collection[str] = (),
) -> str:
    """Return the changes from `before` to `after` (path → content), files in order of their path.

    The diff is text, of ASCII and UTF-8 alone: what is no UTF-8 text is in git's form for binary files, and
    below it, where it is text in another encoding, the change again for people to read.
    Takes seconds where much was changed: call it in a thread.

    Args:
        before, after: the files that may differ, as bytes or text; a missing one is new or deleted.
        executable_before, executable_after: those of them that are executable.
    """

    def mode(path: str, executable: Collection[str]) -> str:
        return "100755" if path in executable else "100644"

    return "".join(
        "".join(
            _file_diff(
                path,
                (_bytes(before.get(path)), mode(path, executable_before)),
                (_bytes(after.get(path)), mode(path, executable_after)),
            )
        )
        for path in sorted(before.keys() | after.keys())
    )


def _bytes(data: bytes | str | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data


def _file_diff(path: str, was: tuple[bytes | None, str], now: tuple[bytes | None, str]) -> Iterator[str]:
    (old, old_mode), (new, new_mode) = was, now
    if old == new and (old_mode == new_mode or old is None):
        return
    yield f"diff --git {_quoted('a/' + path)} {_quoted('b/' + path)}\n"
    if old is None:
        yield f"new file mode {new_mode}\n"
    elif new is None:
        yield f"deleted file mode {old_mode}\n"
    elif old_mode != new_mode:
        yield f"old mode {old_mode}\nnew mode {new_mode}\n"
    before, after = text_of(old or b""), text_of(new or b"")
    if before is None or after is None:
        yield from _binary(path, old, new, new_mode if old_mode == new_mode else "")
        return
    if not old and not new and old != new:
        # An empty file that comes or goes has no hunk; git wants its blob's name instead.
        empty, none = "e69de29", "0000000"
        yield f"index {none}..{empty}\n" if old is None else f"index {empty}..{none}\n"
    # A tab ends a name with spaces in it, as git writes them.
    tab = "\t" if " " in path else ""
    yield from _marked(
        _compared(
            _LINE.findall(before),
            _LINE.findall(after),
            "/dev/null" if old is None else f"{_quoted('a/' + path)}{tab}",
            "/dev/null" if new is None else f"{_quoted('b/' + path)}{tab}",
        )
    )


def _binary(path: str, old: bytes | None, new: bytes | None, mode: str) -> Iterator[str]:
    """Yield a change as git writes it of binary files: the whole content, compressed, there and back."""
    if old == new:
        return
    unchanged = f" {mode}" if mode and old is not None and new is not None else ""
    yield f"index {_blob(old)}..{_blob(new)}{unchanged}\nGIT binary patch\n"
    yield from _literal(new or b"")
    yield from _literal(old or b"")
    yield from _readable(path, old or b"", new or b"")


def _blob(data: bytes | None) -> str:
    """Return the name that git gives to content; of nothing, where there is no file."""
    if data is None:
        return "0" * 40
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _literal(data: bytes) -> Iterator[str]:
    yield f"literal {len(data)}\n"
    squeezed = zlib.compress(data)
    for at in range(0, len(squeezed), 52):
        part = squeezed[at : at + 52]
        length = chr(ord("A") + len(part) - 1) if len(part) <= 26 else chr(ord("a") + len(part) - 27)
        yield f"{length}{base64.b85encode(part, pad=True).decode()}\n"
    yield "\n"


def _readable(path: str, old: bytes, new: bytes) -> Iterator[str]:
    """Yield the change of a text in another encoding as comments, which git passes over."""
    before, after = readable(old), readable(new)
    if before is None or after is None:
        return
    name = _quoted(path)
    encodings = " and ".join(dict.fromkeys(found[0] for data, found in ((old, before), (new, after)) if data))
    yield f"# The change above, of {name} as {encodings} text:\n"
    for line in _compared(_LINE.findall(before[1]), _LINE.findall(after[1]), name, name):
        yield f"# {line.removesuffix(_END)}\n"


def _compared(old: list[str], new: list[str], name: str, new_name: str) -> Iterator[str]:
    if max(len(old), len(new)) <= _MAX_LINES and _pairs(old, new) <= _MAX_PAIRS:
        yield from difflib.unified_diff(old, new, name, new_name)
    elif old != new:
        yield from (f"--- {name}\n", f"+++ {new_name}\n")
        yield f"@@ -{min(1, len(old))},{len(old)} +{min(1, len(new))},{len(new)} @@\n"
        yield from (f"-{line}" for line in old)
        yield from (f"+{line}" for line in new)


def _pairs(old: list[str], new: list[str]) -> int:
    """Return how many pairs of lines lie between what both begin with and what both end with."""
    start = _alike(old, new)
    end = min(_alike(old[::-1], new[::-1]), min(len(old), len(new)) - start)
    return (len(old) - start - end) * (len(new) - start - end)


def _alike(old: list[str], new: list[str]) -> int:
    """Return how many lines both begin with."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (before, after) in pairs if before != after), min(len(old), len(new)))


def news(before: str, after: str) -> str:
    """Return the parts of a diff, file by file, that an earlier one did not have."""
    known = set(_by_file(before))
    return "".join(part for part in _by_file(after) if part not in known)


def _by_file(diff: str) -> list[str]:
    # Within a hunk every line begins with a blank, a sign or a backslash.
    return re.split(r"^(?=diff --git )", diff, flags=re.M)


def _quoted(name: str) -> str:
    """Return a name as git writes it: in quotes with escapes where it holds what would end or bend a line."""
    if not _SPECIAL.search(name):
        return name
    return '"' + _SPECIAL.sub(lambda found: f"\\{ord(found[0]) & 0xFF:03o}", name) + '"'


def _marked(lines: Iterable[str]) -> Iterator[str]:
    """Mark a last line that has no newline; without the mark the patch would add one."""
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}"
