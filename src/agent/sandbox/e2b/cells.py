"""Running one cell in the sandbox's Python kernel."""

import asyncio
import json
import re
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal

from e2b import TimeoutException
from e2b.exceptions import NotFoundException
from e2b_code_interpreter.models import Execution, Result

from agent.errors import SandboxError, SandboxRateLimitError, SandboxTemplateError, SandboxUnreachableError
from agent.sandbox.e2b.bounds import BoundedSandbox
from agent.sandbox.e2b.endings import certain
from agent.sandbox.e2b.errors import meaning, translated
from agent.sandbox.e2b.inside import CELLS, CELLS_MODULE, TAILS
from agent.sandbox.e2b.streams import Streams
from agent.sandbox.provider import OUTPUT_FOLDER, CodeError, CodeResult, OutputHandler, RichResult, Spooled

MIME_TYPES = {
    "text": "text/plain",
    "html": "text/html",
    "markdown": "text/markdown",
    "svg": "image/svg+xml",
    "png": "image/png",
    "jpeg": "image/jpeg",
    "pdf": "application/pdf",
    "latex": "text/latex",
    "json": "application/json",
    "javascript": "application/javascript",
}
CHART = "application/vnd.e2b.chart+json"
"""What E2B's templates tell of a matplotlib figure: kind of chart, axes, values."""

RESTARTED = "application/vnd.agent.restarted"
"""What a kernel displays before its first cell if the sandbox had another before it; as `inside/cells.py`."""
_RESTARTED = {"ContextRestarting", "UnexpectedEndOfExecution"}
"""What the service calls the end of a cell whose kernel died."""
_PROBE_S = 10
"""How long a kernel may take to answer after a cell that had to be interrupted; then it is started anew."""
_SETTLE_S = 2
"""How long an interrupted cell may take to end before its result is told."""
_SDK_MARGIN_S = 30
"""By which the SDK's limits are longer than ours, so that ours count."""
_TAILS_S = 15


class Kernel:
    """What this process knows of a sandbox's kernel between two cells."""

    def __init__(self) -> None:
        self.executions = 0
        """The count of its last cell; a smaller one means that the kernel was started anew."""
        self.told = False
        """The kernel died in its last cell, which said so; the next one's word of that is no news."""
        self.doubtful = False
        """A cell was interrupted; whether it took that is not known."""


class Cell:
    """One cell.

    Args:
        sandbox: where it runs.
        kernel: what is known of its kernel.
        code: the Python code, magics and top-level await included.
        timeout_s: its limit, in seconds.
        variables: environment variables for the time it runs.
        shown_bytes: how much of its output the caller shows.
        on_output: called with each piece of output.
    """

    def __init__(
        self,
        sandbox: BoundedSandbox,
        kernel: Kernel,
        code: str,
        *,
        timeout_s: float,
        variables: Mapping[str, str],
        shown_bytes: int,
        on_output: OutputHandler | None,
    ) -> None:
        self._sandbox = sandbox
        self._kernel = kernel
        self._code = code
        self._timeout_s = timeout_s
        self._variables = variables
        self._streams = Streams(secrets.token_hex(4), shown_bytes, on_output)

    async def run(self) -> CodeResult:
        """Run it; at its limit, and when this is cancelled, it is interrupted: the request ends."""
        restarted = await self._revived()
        started = time.monotonic()
        execution = Execution()
        timed_out = False
        # Also where this is cancelled: only a cell that came to its end leaves the kernel in order.
        self._kernel.doubtful = True
        try:
            # Not left to the SDK, whose own limit takes effect at twice its length (2.11.5).
            async with asyncio.timeout(self._timeout_s):
                execution = await self._executed()
            self._kernel.doubtful = False
        except TimeoutError:
            timed_out = True
            self._kernel.doubtful = not await self._answers(_SETTLE_S)
            await self._fetch_tails()
        except TimeoutException as exc:
            raise await self._explained(exc) from exc
        except NotFoundException as exc:
            raise SandboxTemplateError(f"the sandbox has no Python kernel: {exc}") from exc
        except Exception as exc:
            said = meaning(exc)
            if isinstance(said, SandboxRateLimitError):
                # Told to the model, where the same answer to a request of ours ends the run.
                raise SandboxError(f"{said}. The cell did not run.") from exc
            raise await certain(self._sandbox, said) from exc
        duration_s = time.monotonic() - started
        error = self._error(execution)
        died = error is not None and error.name in _RESTARTED
        told = [result for result in execution.results if RESTARTED in (result.extra or {})]
        execution.results = [result for result in execution.results if result not in told]
        # Of one that died within a cell, that cell has told.
        told_now = bool(told) and not self._kernel.told
        restarted = self._counted_back(execution) or restarted or died or told_now
        death = await self._death() if died else ""
        self._kernel.told = died
        if died:
            self._kernel.executions = 0
        results, files = self._results(execution)
        stdout, stderr, spooled = self._streams.end()
        return CodeResult(
            stdout, stderr, results, error, timed_out, duration_s, {**spooled, **files}, restarted, death
        )

    async def _death(self) -> Literal["in the cell", "before the cell", "unknown"]:
        """Return whether the cell had begun when its kernel died.

        The service calls both the same; the file that a cell leaves as it begins outlives the kernel.
        """
        if self._streams.any:
            return "in the cell"
        # On a full disk the file could not be made: only where one can be now, its absence says something.
        probe = f"{OUTPUT_FOLDER}/.probe-$$"
        script = f"test -e {self._streams.base}.begun && echo in; : > {probe} && rm {probe} && echo asked"
        with suppress(SandboxError), translated():
            said = (await self._sandbox.run_script(script, timeout_s=_TAILS_S)).stdout.split()
            if "in" in said:
                return "in the cell"
            if said == ["asked"]:
                return "before the cell"
        return "unknown"

    async def _executed(self) -> Execution:
        streams = self._streams
        measures = (streams.base, streams.nonce, streams.passed_bytes, streams.spooled_from)
        given = ", ".join(map(repr, (self._code, *measures)))
        # A cell that awaits nothing runs outside any coroutine, where it can be interrupted.
        run = "await {}.run_async" if re.search(r"\b(await|async)\b", self._code) else "{}.run"
        modules, name = "__import__('sys').modules", repr(CELLS_MODULE)
        return await self._sandbox.run_code(
            f"{name} in {modules} or exec({CELLS!r}, {{'__name__': {name}}})\n"
            f"{run.format(f'{modules}[{name}].cells')}({given})",
            envs=dict(self._variables) or None,
            timeout=self._timeout_s + _SDK_MARGIN_S,
            on_stdout=streams.stdout_message,
            on_stderr=streams.stderr_message,
        )

    async def _revived(self) -> bool:
        """Start the kernel anew if it still does not answer; return whether that was needed."""
        if not self._kernel.doubtful or await self._answers(_PROBE_S):
            return False
        with translated():
            contexts = await self._sandbox.list_code_contexts()
            await self._sandbox.restart_code_context(
                next(context for context in contexts if context.language == "python")
            )
        self._kernel.executions = 0
        return True

    async def _answers(self, patience_s: float) -> bool:
        """Whether the kernel runs an empty cell in time."""
        try:
            async with asyncio.timeout(patience_s):
                await self._sandbox.run_code("", timeout=patience_s + _SDK_MARGIN_S)
        except TimeoutError:
            return False
        except TimeoutException as exc:
            raise await self._explained(exc) from exc
        except Exception as exc:
            raise await certain(self._sandbox, meaning(exc)) from exc
        return True

    def _counted_back(self, execution: Execution) -> bool:
        count, last = execution.execution_count, self._kernel.executions
        if count is None:
            return False
        self._kernel.executions = count
        return count <= last

    async def _explained(self, exc: TimeoutException) -> SandboxError:
        """Return what the SDK means by "timeout": a dead sandbox, a paused one, a closed port, or no answer.

        Asking the control plane tells them apart without waking a paused sandbox.
        """
        try:
            with translated():
                info = await self._sandbox.get_info()
        except SandboxError as answer:
            return answer
        if info.state.value == "paused":
            return SandboxUnreachableError("the sandbox was paused while the code ran")
        if "port is not open" in str(exc):
            return SandboxTemplateError(
                f"the template {info.template_id!r} does not serve the code interpreter (port 49999 is "
                "closed): its start command is missing"
            )
        return SandboxUnreachableError(f"the sandbox did not answer: {exc}")

    async def _fetch_tails(self) -> None:
        """Take in the ends of what the interrupted cell printed, if only the heads were passed on."""
        streams = self._streams
        if not streams.full:
            return
        given = f"base={streams.base} nonce={streams.nonce} half={streams.passed_bytes // 2}\n"
        with suppress(SandboxError), translated():
            said = await self._sandbox.run_script(f"{given}{TAILS}\ntrue", timeout_s=_TAILS_S)
            await streams.stdout(said.stdout)
            await streams.stderr(said.stderr)

    def _error(self, execution: Execution) -> CodeError | None:
        if not (error := execution.error):
            return None
        return CodeError(error.name, *map(self._streams.excerpt, (error.value, error.traceback)))

    def _results(self, execution: Execution) -> tuple[tuple[RichResult, ...], dict[str, Spooled]]:
        results, files = [], {}
        for number, result in enumerate(execution.results, 1):
            data = {}
            for mime, value in _forms(result).items():
                name = f"result-{number}" + ("" if mime == "text/plain" else f".{mime.split('/')[-1]}")
                data[mime], file = self._streams.read(name, value)
                if file:
                    files[name] = file
            results.append(RichResult(data, result.is_main_result))
        return tuple(results), files


def _forms(result: Result) -> dict[str, str]:
    forms: dict[str, Any] = {mime: getattr(result, name) for name, mime in MIME_TYPES.items()}
    forms[CHART] = result.chart.to_dict() if result.chart else None
    forms |= result.extra or {}
    return {
        mime: value if isinstance(value, str) else json.dumps(value)
        for mime, value in forms.items()
        if value is not None
    }
