"""A folder as the map of files that `plan_execute` takes."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

MAX_BYTES = 1_000_000
"""What the graph accepts, in bytes of UTF-8 text."""

_NEVER = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__", ".mypy_cache", ".pytest_cache"})
_GIT_S = 60


class PackError(Exception):
    """The folder cannot be sent; nothing was."""


@dataclass(frozen=True, slots=True)
class Packed:
    """The files to send, and those left out with the reason."""

    project: dict[str, str]
    left_out: dict[str, str]

    @property
    def size(self) -> int:
        """Bytes of text."""
        return sum(len(text.encode()) for text in self.project.values())


def pack(folder: Path) -> Packed:
    """Read a folder's text files.

    Git decides what counts, in a repository or not: .gitignore files and the user's own excludes are
    honoured. Without git installed, hidden files and well-known folders are passed over instead. Links,
    binary files, names that are not UTF-8 and `.env` files (they hold keys) are left out.

    Raises:
        PackError: no such folder, nothing to send, or more than `MAX_BYTES`; names the largest files.
    """
    if not folder.is_dir():
        raise PackError(f"{folder} is no folder.")
    project: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for path in sorted(set(_paths(folder))):
        text, reason = _read(folder / path, path)
        if text is None:
            left_out[path.encode("utf-8", "backslashreplace").decode()] = reason
        else:
            project[path] = text
    packed = Packed(project, left_out)
    if not project:
        raise PackError(f"{folder} has no text files to send.")
    if packed.size > MAX_BYTES:
        raise PackError(_too_large(packed))
    return packed


def _read(path: Path, name: str) -> tuple[str | None, str]:
    if not _is_utf8(name):
        return None, "its name is not UTF-8"
    if path.is_symlink():
        return None, "a link"
    if path.name == ".env" or (path.name.startswith(".env.") and path.name != ".env.example"):
        return None, "may hold keys"
    if not path.is_file():  # deleted but still in git's index, or a submodule
        return None, "not a file"
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return None, "not UTF-8 text"
    except OSError as exc:
        raise PackError(f"{name} cannot be read: {exc.strerror}") from exc
    return (None, "binary") if "\0" in text else (text, "")


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # bytes that git or the system could only hand over as surrogates
        return False
    return True


def _too_large(packed: Packed) -> str:
    by_size = sorted(packed.project, key=lambda path: len(packed.project[path]), reverse=True)[:3]
    largest = ", ".join(f"{path} ({len(packed.project[path].encode()):,} bytes)" for path in by_size)
    return (
        f"{packed.size:,} bytes of text; at most {MAX_BYTES:,} can be sent. The largest files: {largest}. "
        "Name a smaller folder, or list files in .gitignore."
    )


def _paths(folder: Path) -> Iterator[str]:
    git = shutil.which("git")
    if git is None:
        yield from _walk(folder, "")
        return
    listed = _git_ls_files(git, folder, [])
    if listed is None:  # no repository: one for the moment, elsewhere, applies the same rules
        with tempfile.TemporaryDirectory(prefix="sandbox-agent-") as elsewhere:
            subprocess.run([git, "init", "-q", "--bare", elsewhere], check=True, timeout=_GIT_S)
            listed = _git_ls_files(git, folder, [f"--git-dir={elsewhere}", f"--work-tree={folder.resolve()}"])
    for path in listed or []:
        if not _NEVER & set(PurePosixPath(path).parts):
            yield path


def _git_ls_files(git: str, folder: Path, where: list[str]) -> list[str] | None:
    command = [git, *where, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=_GIT_S, check=False)
    if done.returncode != 0:
        return None
    return [path.decode("utf-8", "surrogateescape") for path in done.stdout.split(b"\0") if path]


def _walk(folder: Path, prefix: str) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.name.startswith(".") or entry.name in _NEVER:
            continue
        if entry.is_dir() and not entry.is_symlink():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}"
