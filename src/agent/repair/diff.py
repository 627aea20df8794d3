"""A unified diff between two trees of files that `git apply` and `patch -p1` take."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping

# By newline alone: str.splitlines also splits at form feeds and others that a patch keeps inside a line.
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_NO_NEWLINE = "\\ No newline at end of file\n"


def unified_diff(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return the changes from `before` to `after` (path → text), files in order of their path."""
    paths = sorted(before.keys() | after.keys())
    return "".join("".join(_file_diff(path, before.get(path), after.get(path))) for path in paths)


def _file_diff(path: str, old: str | None, new: str | None) -> Iterator[str]:
    if old == new:
        return
    yield f"diff --git a/{path} b/{path}\n"
    if old is None:
        yield "new file mode 100644\n"
    if new is None:
        yield "deleted file mode 100644\n"
    if not old and not new:
        # An empty file that comes or goes has no hunk; git wants its blob's name instead.
        empty, none = "e69de29", "0000000"
        yield f"index {none}..{empty}\n" if old is None else f"index {empty}..{none}\n"
    # A tab ends a name with spaces in it, as git writes them.
    tab = "\t" if " " in path else ""
    yield from _marked(
        difflib.unified_diff(
            _LINE.findall(old or ""),
            _LINE.findall(new or ""),
            "/dev/null" if old is None else f"a/{path}{tab}",
            "/dev/null" if new is None else f"b/{path}{tab}",
        )
    )


def _marked(lines: Iterable[str]) -> Iterator[str]:
    """Mark a last line that has no newline; without the mark the patch would add one."""
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}"
