"""A unified diff between two trees of files that `git apply` takes, whatever the files are named."""

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

# By newline alone: str.splitlines also splits at form feeds and others that a patch keeps inside a line.
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_NO_NEWLINE = "\\ No newline at end of file\n"
_SPECIAL = re.compile(r'["\\\x00-\x1f\x7f]')
_MAX_LINES = 20_000
"""Of a file that is compared line by line."""
_MAX_PAIRS = 4_000_000
"""Of its lines before times after, from the first that differs to the last: so the time grows."""


def unified_diff(
    before: Mapping[str, str],
    after: Mapping[str, str],
    *,
    executable_before: Collection[str] = (),
    executable_after: Collection[str] = (),
) -> str:
    """Return the changes from `before` to `after` (path → text), files in order of their path.

    Takes seconds where much was changed: call it in a thread.

    Args:
        before, after: the files that may differ; one that is missing is new or deleted.
        executable_before, executable_after: those of them that are executable.
    """

    def mode(path: str, executable: Collection[str]) -> str:
        return "100755" if path in executable else "100644"

    return "".join(
        "".join(
            _file_diff(
                path,
                (before.get(path), mode(path, executable_before)),
                (after.get(path), mode(path, executable_after)),
            )
        )
        for path in sorted(before.keys() | after.keys())
    )


def _file_diff(path: str, was: tuple[str | None, str], now: tuple[str | None, str]) -> Iterator[str]:
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
    if not old and not new and old != new:
        # An empty file that comes or goes has no hunk; git wants its blob's name instead.
        empty, none = "e69de29", "0000000"
        yield f"index {none}..{empty}\n" if old is None else f"index {empty}..{none}\n"
    # A tab ends a name with spaces in it, as git writes them.
    tab = "\t" if " " in path else ""
    yield from _marked(
        _compared(
            _LINE.findall(old or ""),
            _LINE.findall(new or ""),
            "/dev/null" if old is None else f"{_quoted('a/' + path)}{tab}",
            "/dev/null" if new is None else f"{_quoted('b/' + path)}{tab}",
        )
    )


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
    return '"' + _SPECIAL.sub(lambda found: f"\\{ord(found[0]):03o}", name) + '"'


def _marked(lines: Iterable[str]) -> Iterator[str]:
    """Mark a last line that has no newline; without the mark the patch would add one."""
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}"
