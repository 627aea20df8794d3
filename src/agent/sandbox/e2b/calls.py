"""Calling one of this package's own programs in a sandbox."""

import asyncio
import base64
import json
import zlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar

from e2b import InvalidArgumentException, TimeoutException
from e2b.exceptions import SandboxNotRunningException, SandboxUnreachableException
from pydantic import TypeAdapter, with_config
from typing_extensions import TypedDict

from agent.bounded import parsed_json
from agent.errors import SandboxAnswerError, SandboxError, SandboxGoneError, SandboxTemplateError
from agent.sandbox.e2b.bounds import BoundedSandbox
from agent.sandbox.e2b.endings import TAG, certain, end_tree, new_tag, to_its_end
from agent.sandbox.e2b.errors import meaning
from agent.sandbox.e2b.inside import PROGRAM, RUN_PROGRAM

PIECE_BYTES = 100_000
"""Linux takes no string of the environment longer than 128 KB, its name included."""
MAX_REQUEST_BYTES = 1_500_000
"""Of all pieces: Linux takes 2 MB of arguments and environment together."""

_ERRORS: dict[str, type[Exception]] = {
    error.__name__: error
    for error in (
        FileNotFoundError,
        FileExistsError,
        IsADirectoryError,
        NotADirectoryError,
        PermissionError,
        ValueError,
    )
}
_NO_PYTHON = 127
_MAX_MESSAGE_CHARS = 500

T = TypeVar("T")


@with_config(strict=True)
class _Failure(TypedDict):
    error: str
    message: str


_FAILURE = TypeAdapter(_Failure)


async def call(
    sandbox: BoundedSandbox,
    program: str,
    operation: str,
    *,
    timeout_s: float,
    before: str = "",
    variables: Mapping[str, str] | None = None,
    cwd: str | None = None,
    shape: TypeAdapter[T],
    **request: Any,
) -> T:
    """Run a program with one request, and return its answer.

    Args:
        sandbox: where.
        program: its text.
        operation: which of its operations.
        timeout_s: the limit, in seconds.
        before: shell code to run first.
        variables: environment variables for it, the mark of its processes among them if it is to be another.
        cwd: the folder to run it in; default the sandbox's home.
        shape: what an answer looks like; any other is refused, for anything may have answered.
        **request: the operation's arguments, as JSON has them.

    Raises:
        OSError: what the operation failed at, as the standard library's class for it; the message is the
            reason alone.
        ValueError: the request is too large.
        SandboxError: the program could not be run, or what it answered is no answer.
    """
    packed = base64.b64encode(
        zlib.compress(json.dumps({"operation": operation, **request}).encode())
    ).decode()
    if len(packed) > MAX_REQUEST_BYTES:
        raise ValueError("too much for one call")
    pieces = [packed[at : at + PIECE_BYTES] for at in range(0, len(packed), PIECE_BYTES)]
    envs = {TAG: new_tag(), PROGRAM: program, **(variables or {})}
    envs |= {f"AGENT_INPUT_{number}": piece for number, piece in enumerate(pieces)}
    try:
        said = await sandbox.run_script(
            f"{before}\nexec python3 -I -S -c '{RUN_PROGRAM}'", envs=envs, cwd=cwd, timeout_s=timeout_s
        )
    except asyncio.CancelledError:
        with suppress(SandboxGoneError):
            await to_its_end(end_tree(sandbox, envs[TAG], None))
        raise
    except InvalidArgumentException as exc:
        if "cwd" in str(exc):
            raise NotADirectoryError(f"there is no folder {cwd}") from exc
        raise meaning(exc) from exc
    except (SandboxNotRunningException, SandboxUnreachableException) as exc:
        raise await certain(sandbox, meaning(exc)) from exc
    except TimeoutException as exc:
        raise TimeoutError(f"this took longer than {timeout_s:g} s and was stopped") from exc
    except SandboxError:
        raise
    except Exception as exc:
        raise await certain(sandbox, meaning(exc)) from exc
    if said.exit_code == _NO_PYTHON:
        raise SandboxTemplateError("the template has no python3, which this tool needs")
    if said.exit_code:
        raise SandboxError(f"the sandbox could not do this: {said.stderr.strip()[-300:]}")
    return _result(said.stdout, shape)


def _result(text: str, shape: TypeAdapter[T]) -> T:
    try:
        answer = parsed_json(text.encode("utf-8", "replace"))
        if isinstance(answer, dict) and "error" not in answer:
            return shape.validate_python(answer.get("result"))
        failed = _FAILURE.validate_python(answer)
    # Both kinds of parsing end in a ValueError, whatever was sent.
    except ValueError as exc:
        raise SandboxAnswerError("the sandbox gave an answer that is not one") from exc
    raise _ERRORS.get(failed["error"], OSError)(failed["message"][:_MAX_MESSAGE_CHARS])
