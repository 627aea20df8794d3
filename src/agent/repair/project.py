"""The project under repair: its files as text, into the sandbox and out of it again."""

import fnmatch
import io
import posixpath
import shlex
import tarfile
from collections.abc import Mapping, Sequence

from agent.errors import InputError, SandboxError
from agent.sandbox.provider import Box

ROOT = "/home/user/project"
"""Where the project stands in the sandbox."""

MAX_INPUT_BYTES = 1_000_000
MAX_TREE_BYTES = 20_000_000
PROTECTED = (
    "tests/*",
    "*/tests/*",
    "test/*",
    "*/test/*",
    "test_*.py",
    "*/test_*.py",
    "*_test.py",
    "conftest.py",
    "*/conftest.py",
)
"""Files whose change would let the tests pass without mending anything."""

_ARCHIVE = ".project.tar.gz"
_NOT_SOURCE = ("__pycache__", ".pytest_cache", ".git", ".venv", "node_modules", "*.pyc")


def checked(project: object) -> dict[str, str]:
    """Return the project's files (path → text).

    Raises:
        InputError: not a map of relative paths to text, empty, or too large; says which file and why.
    """
    if not isinstance(project, dict) or not project:
        problem = "is missing" if project is None else "is empty" if project == {} else "is not a map"
        raise InputError(
            f"`project` {problem}: send the files to repair as a map of relative path to text, such as "
            '{"app.py": "…", "tests/test_app.py": "…"}'
        )
    for path, text in project.items():
        if not isinstance(path, str) or not isinstance(text, str):
            raise InputError(f"`project` maps {path!r} to {type(text).__name__}; paths and contents are text")
        parts = path.split("/")
        if not path or path.startswith("/") or "\0" in path or {"", ".", ".."} & set(parts):
            raise InputError(
                f"`project` has the path {path!r}; paths are relative, with no empty, . or .. parts"
            )
        if inner := next((other for other in project if str(other).startswith(f"{path}/")), None):
            raise InputError(f"`project` has {path!r} both as a file and as a folder, in {inner!r}")
    size = sum(len(text.encode("utf-8", "replace")) for text in project.values())
    if size > MAX_INPUT_BYTES:
        raise InputError(f"`project` has {size} bytes of text; at most {MAX_INPUT_BYTES} can be sent")
    return project


def checked_words(**words: object) -> None:
    """Check input that is text where it is given at all.

    Raises:
        InputError: it is something else; says which.
    """
    for name, value in words.items():
        if value is not None and not isinstance(value, str):
            raise InputError(f"`{name}` is {type(value).__name__}; it is text")


async def upload(box: Box, project: Mapping[str, str]) -> None:
    """Write the project's files into the sandbox."""
    await box.write_files(
        {f"{ROOT}/{path}": text.encode("utf-8", "replace") for path, text in project.items()}
    )


async def download(box: Box) -> dict[str, str]:
    """Return the project's text files as they are now; caches and binary files are left out.

    The whole tree travels as one archive, which is read in memory and never unpacked on the host.

    Raises:
        SandboxError: the tree could not be packed, or is larger than 20 MB.
    """
    excludes = " ".join(f"--exclude={shlex.quote(pattern)}" for pattern in _NOT_SOURCE)
    # Relative to the project: without isolation a local sandbox's home lies elsewhere on the disk.
    packed = await box.run_command(
        f"tar -czf ../{_ARCHIVE} {excludes} . && wc -c < ../{_ARCHIVE}", timeout_s=60, cwd=ROOT
    )
    if packed.exit_code != 0:
        raise SandboxError(f"the project could not be packed: {packed.stderr.strip() or packed.exit_code}")
    if int(packed.stdout) > MAX_TREE_BYTES:
        raise SandboxError(
            f"the project has grown to {packed.stdout.strip()} bytes packed; the limit is 20 MB"
        )
    return _texts(await box.read_file(posixpath.join(posixpath.dirname(ROOT), _ARCHIVE)))


def _texts(archive: bytes) -> dict[str, str]:
    files: dict[str, str] = {}
    room = MAX_TREE_BYTES
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        for member in tar:
            room -= member.size
            if room < 0:
                # The archive was made in the sandbox, by whatever runs there: a few bytes may unpack to much.
                raise SandboxError("the project has grown beyond 20 MB")
            content = tar.extractfile(member) if member.isfile() else None
            if content is None:
                continue
            try:
                files[posixpath.normpath(member.name)] = content.read().decode("utf-8")
            except UnicodeDecodeError:
                continue
    return files


def patched(project: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return the project with the changes made; None is a file that was deleted."""
    merged = {**project, **changes}
    return {path: text for path, text in merged.items() if text is not None}


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str | None]:
    """Return what differs: path → new text, None for a file that is no longer there."""
    return {
        path: after.get(path) for path in sorted({*before, *after}) if before.get(path) != after.get(path)
    }


def is_test(path: str) -> bool:
    """Whether the file is protected: a change to it could turn the tests green without mending anything."""
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in PROTECTED)


def protected(project: Mapping[str, str]) -> dict[str, str]:
    """Return the files that are restored before each verification."""
    return {path: text for path, text in project.items() if is_test(path)}


async def restore(box: Box, files: Mapping[str, str], remove: Sequence[str]) -> None:
    """Write the files as they were and delete those named in `remove`."""
    await upload(box, files)
    if remove:
        paths = " ".join(shlex.quote(path) for path in remove)
        await box.run_command(f"rm -f -- {paths}", timeout_s=30, cwd=ROOT)
