"""What a client asks for, checked before anything is made."""

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.messages import HumanMessage
from pydantic import ValidationError

from agent.errors import InputError, problems
from agent.repair.limits import Limits
from agent.repair.plan import file_and_folder, path_problem
from agent.repair.tree import PROTECTED

NO_ARCHIVE = (
    "`project` is missing, and the archive that was uploaded to this thread is gone with its sandbox: upload "
    "it again and start anew"
)
NOT_BOTH = (
    "`project` came beside an archive that was uploaded to this thread and that no run has used: only one of "
    "them can be repaired, and nothing was started. Start with `project` empty, {}, for the archive, or send "
    "`project` to another thread"
)
DEFAULT_TEST_COMMAND = "python -m pytest -q"
MAX_INPUT_BYTES = 1_000_000
MAX_INPUT_FILES = 10_000
_MAX_GLOB_CHARS = 1_000
_MAX_WORDS = 20_000
_MAX_GLOBS = 100


WORDS = ("test_command", "setup_command", "goal", "workdir")


def checked(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input with its defaults filled in.

    Raises:
        InputError: something in it cannot be worked with; says what and why.
    """
    checked_request(state)
    archive = state.get("archive") or None
    project = state.get("project")
    if project and archive and state.get("sandbox_id") and not archive.get("used"):
        raise InputError(NOT_BOTH)
    if project or not archive:
        archive = None
    elif not state.get("sandbox_id"):
        raise InputError(NO_ARCHIVE)
    return {
        "project": {} if archive else project,
        # A later run may leave it for a `project`, which an archive that nobody asked about yet forbids.
        "archive": archive and {**archive, "used": True},
        "test_command": (state.get("test_command") or "").strip() or DEFAULT_TEST_COMMAND,
        "setup_command": (state.get("setup_command") or "").strip(),
        "goal": state.get("goal") or _said(state),
        "workdir": _folder(state.get("workdir")),
        "protect": _globs(state.get("protect")),
        "limits": _limits(state.get("limits")),
    }


def checked_request(state: Mapping[str, Any]) -> None:
    """Check what a client asks for, as it came or as state holds it by now.

    Raises:
        InputError: something in it cannot be worked with; says what and why.
    """
    project = state.get("project")
    if project or not state.get("archive"):
        checked_project(project)
    for name in WORDS:
        _checked_words(name, state.get(name))
    workdir = _folder(state.get("workdir"))
    if workdir and (problem := path_problem(workdir)):
        raise InputError(f"`workdir`: {problem}")
    if workdir and project and not any(path.startswith(f"{workdir}/") for path in project):
        raise InputError(f"`workdir` is {workdir!r}, and `project` has no such folder")
    _globs(state.get("protect"))
    _limits(state.get("limits"))


def lacks_project(state: Mapping[str, Any]) -> bool:
    """Whether a human wrote to a repair, as a chat front end lets them, and there is nothing to repair."""
    if state.get("archive"):
        lacks = not state.get("project") and not state.get("sandbox_id")
    else:
        lacks = state.get("project") is None  # one that is empty is a program's mistake
    return lacks and bool(_human(state))


def words_of(name: str) -> Callable[[Any, Any], Any]:
    """Return the reducer of a key that takes words: the later ones, and nothing else, by any way in."""

    def newest(_: Any, new: Any) -> Any:
        _checked_words(name, new)
        return new

    return newest


def newest_limits(_: Any, new: Any) -> dict[str, Any]:
    """Take the later limits, with defaults, and nothing else: what is none would stay for later runs."""
    return _limits(new)


def _folder(workdir: str | None) -> str:
    workdir = workdir or ""
    workdir = workdir if workdir.startswith("/") else workdir.removeprefix("./").rstrip("/")
    return "" if workdir == "." else workdir


def checked_project(project: object) -> dict[str, str]:
    """Return the project's files (path → text).

    Raises:
        InputError: not a map of relative paths to text, empty, or too large; says which file and why.
    """
    if not isinstance(project, dict) or not project:
        problem = "is missing" if project is None else "is empty" if project == {} else "is not a map"
        raise InputError(
            f"`project` {problem}: send the files to repair as a map of relative path to text, such as "
            '{"app.py": "…", "tests/test_app.py": "…"}, or upload an archive first'
        )
    if len(project) > MAX_INPUT_FILES or sum(len(str(path)) for path in project) > MAX_INPUT_BYTES:
        raise InputError(
            f"`project` has {len(project)} files; at most {MAX_INPUT_FILES}, with {MAX_INPUT_BYTES} "
            "characters in their paths, can be sent, more as an archive"
        )
    for path, text in project.items():
        if not isinstance(path, str) or not isinstance(text, str):
            raise InputError(
                f"`project` maps {path!r:.200} to {type(text).__name__}; paths and contents are text"
            )
        if problem := path_problem(path):
            raise InputError(f"`project` has the path {path!r:.200}: {problem}")
        if ".git" in path.split("/"):
            raise InputError(
                f"`project` has {path!r}, which is git's own: send the files of the project alone"
            )
    if both := file_and_folder(project):
        raise InputError(f"`project` has {both[0]!r} both as a file and as a folder, in {both[1]!r}")
    size = sum(len(text.encode("utf-8", "replace")) for text in project.values())
    if size > MAX_INPUT_BYTES:
        raise InputError(
            f"`project` has {size} bytes of text; at most {MAX_INPUT_BYTES} can be sent, more as an archive"
        )
    return project


def _checked_words(name: str, value: object) -> None:
    if value is not None and not isinstance(value, str):
        raise InputError(f"`{name}` is {type(value).__name__}; it is text")
    if value is not None and (len(value) > _MAX_WORDS or "\0" in value):
        raise InputError(f"`{name}` holds NUL characters or more than {_MAX_WORDS} of them")


def _said(state: Mapping[str, Any]) -> str:
    """Return what a human wrote in a chat front end, which sends no `goal`."""
    human = _human(state)
    return str(human[-1].text)[:_MAX_WORDS] if human else ""


def _human(state: Mapping[str, Any]) -> list[HumanMessage]:
    said = state.get("messages") or ()
    return [message for message in said if isinstance(message, HumanMessage) and not message.name]


def _globs(value: object) -> list[str]:
    if value is None:
        return list(PROTECTED)
    if not isinstance(value, list) or not all(isinstance(glob, str) and glob for glob in value):
        raise InputError("`protect` is a list of globs such as tests/** or **/*_test.go; [] protects nothing")
    if len(value) > _MAX_GLOBS or any(len(glob) > _MAX_GLOB_CHARS for glob in value):
        raise InputError(
            f"`protect` has {len(value)} globs; at most {_MAX_GLOBS}, each of {_MAX_GLOB_CHARS} characters"
        )
    return value


def _limits(value: object) -> dict[str, Any]:
    try:
        return Limits.model_validate(value if value is not None else {}).model_dump()
    except ValidationError as exc:
        raise InputError(f"`limits` cannot be used: {problems(exc, 'limits')}") from None
