"""The SDK's sandbox with a bound on all that comes out of it.

What answers in a sandbox is as little trusted as what runs there: a program may take the daemon's place, and
then says what it likes, at any length. The SDK reads an answer to its end before it looks at it. So the
connections are bounded, below the SDK: what passes a bound is refused as it arrives, and the connection is
closed.
"""

import functools
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from e2b import AsyncCommandHandle, CommandExitException, RateLimitException
from e2b.api import proxy_to_config
from e2b.api.client_async import get_pyqwest_transport, get_transport
from e2b.connection_config import ConnectionConfig
from e2b.envd.client_async import PlainHTTPErrorTransport, create_rpc_client
from e2b.envd.filesystem.filesystem_connect import FilesystemClient
from e2b.envd.process.process_connect import ProcessClient
from e2b_code_interpreter.code_interpreter_async import AsyncSandbox
from pyqwest import Client, Request, Response, Transport

from agent.errors import SandboxAnswerError
from agent.sandbox.e2b.cell_lines import CellLines
from agent.sandbox.e2b.errors import meaning
from agent.sandbox.output import BoundedText
from agent.sandbox.retries import Retries

MAX_ANSWER_BYTES = 2_000_000
"""Of one answer over HTTP: the longest tells what was written, file by file. Parsed, JSON takes up to 24
times as much."""
MAX_MESSAGE_BYTES = 1_000_000
"""Of one message of the daemon's streams; it sends output in pieces of a few kilobytes."""
MAX_RPC_BYTES = 300_000
"""Of one answer of the daemon: a folder of 1,500 entries."""
MAX_ERROR_BYTES = 65_536
"""Of what an error answer says; the rest is cut off."""
MAX_SCRIPT_BYTES = 8_000_000
"""Of what a program of ours prints: an image of 5 MB as base64, and what stands around it."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Said:
    """What a script of ours printed, and how it ended."""

    exit_code: int
    stdout: str
    stderr: str


class BoundedSandbox(AsyncSandbox):
    """The same sandbox as a handle's, over connections of its own that are bounded.

    The handle itself stays as the SDK made it, for tools that use the SDK.
    """

    @classmethod
    def of(cls, sandbox: AsyncSandbox, retries: Retries) -> "BoundedSandbox":
        """Return it; sends nothing.

        Args:
            sandbox: the handle.
            retries: how patiently requests that may be repeated are sent again.
        """
        bounded = cls(
            sandbox_id=sandbox.sandbox_id,
            sandbox_domain=sandbox.sandbox_domain,
            envd_version=sandbox._envd_version,
            envd_access_token=sandbox._envd_access_token,
            traffic_access_token=sandbox.traffic_access_token,
            connection_config=sandbox.connection_config,
        )
        bounded.retries = retries
        return bounded

    retries: Retries

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for owner in (self, self.files, self.commands):
            for client in vars(owner).values():
                if isinstance(client, httpx.AsyncClient):
                    client._transport = BoundedHTTP(client._transport)
        self.files._rpc = self._bounded_rpc(FilesystemClient)
        self.commands._rpc = self._bounded_rpc(ProcessClient)

    def _bounded_rpc(self, kind: Callable[..., T]) -> T:
        config: ConnectionConfig = self.connection_config
        shared = get_pyqwest_transport(proxy_to_config(config.proxy), http_version=config.http_version)
        client = Client(PlainHTTPErrorTransport(BoundedRPC(shared)))

        def made(*args: Any, **more: Any) -> T:
            return kind(*args, **{**more, "http_client": client})

        return create_rpc_client(made, self.envd_api_url, config)

    @property
    def _client(self) -> httpx.AsyncClient:
        # As the SDK's, which asks for it anew with each request to the code interpreter.
        shared = get_transport(self.connection_config, http_version="1.1")
        return httpx.AsyncClient(transport=BoundedHTTP(shared))

    async def run_script(
        self,
        script: str,
        *,
        timeout_s: float,
        envs: Mapping[str, str] | None = None,
        cwd: str | None = None,
        max_bytes: int = MAX_SCRIPT_BYTES,
    ) -> Said:
        """Run a script of ours to its end, and return what it printed; of errors head and tail.

        Raises:
            SandboxAnswerError: it printed more than `max_bytes`; what still runs of it is left to its limit.
        """
        out, errors, room = [], BoundedText(MAX_ERROR_BYTES), max_bytes

        def take(piece: str) -> None:
            nonlocal room
            room -= len(piece)
            if room < 0:
                raise SandboxAnswerError(f"the sandbox gave an answer of more than {max_bytes} bytes")
            out.append(piece)

        handle = await self.started(
            script,
            envs=dict(envs or {}),
            cwd=cwd,
            timeout=timeout_s,
            on_stdout=take,
            on_stderr=errors.add,
        )
        try:
            exit_code = (await handle.wait()).exit_code
        except CommandExitException as exc:
            exit_code = exc.exit_code
        finally:
            await handle.disconnect()
        return Said(exit_code, "".join(out), errors.text())

    async def started(self, line: str, **options: Any) -> AsyncCommandHandle[None]:
        """Start a command line; again where the service took no requests for the moment, and did nothing.

        Args:
            line: the command line.
            **options: as of the SDK's `commands.run`.
        """

        async def start() -> AsyncCommandHandle[None]:
            try:
                handle: AsyncCommandHandle[None] = await self.commands.run(
                    line, background=True, retain_output=False, **options
                )
            except RateLimitException as exc:
                raise meaning(exc) from exc
            return handle

        return await self.retries.answered(start)


class BoundedHTTP(httpx.AsyncBaseTransport):
    """Bounds each answer by what was asked.

    The content of a file is left to who asked for it, who counts; what a cell does to `CellLines`.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request on; its answer is taken as it comes, never decompressed: that would be at once."""
        request.headers["accept-encoding"] = "identity"
        response = await self._inner.handle_async_request(request)
        response.headers.pop("content-encoding", None)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _Stream(response.stream, _bound_of(request, response.status_code))
        return response


Bound = Callable[[AsyncIterator[bytes]], AsyncIterator[bytes]]


def _bound_of(request: httpx.Request, status: int) -> Bound:
    if status >= 400:
        return functools.partial(_cut, max_bytes=MAX_ERROR_BYTES)
    if (request.method, request.url.path) == ("GET", "/files"):
        return lambda chunks: chunks
    if request.url.path == "/execute":
        return CellLines().passed
    return functools.partial(_refused, max_bytes=MAX_ANSWER_BYTES, error=_too_long)


class _Stream(httpx.AsyncByteStream):
    def __init__(self, inner: httpx.AsyncByteStream, bound: Bound) -> None:
        self._inner = inner
        self._bound = bound

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._bound(aiter(self._inner)):
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class BoundedRPC:
    """Bounds the daemon's answers, and each message of those that come as a stream."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def execute(self, request: Request) -> Response:
        """Send a request on."""
        response = await self._inner.execute(request)
        return Response(
            status=response.status,
            headers=response.headers,
            content=self._content(response),
            trailers=response.trailers,
        )

    @staticmethod
    async def _content(response: Response) -> AsyncIterator[bytes]:
        chunks = (bytes(chunk) async for chunk in response.content)
        if response.status >= 400:
            bounded = _cut(chunks, MAX_ERROR_BYTES)
        elif response.headers.get("content-type", "").startswith("application/connect+"):
            bounded = _messages(chunks, MAX_MESSAGE_BYTES)
        else:
            bounded = _refused(chunks, MAX_RPC_BYTES, _rpc_too_long)
        async with response:
            async for chunk in bounded:
                yield chunk


def _too_long(max_bytes: int) -> Exception:
    return SandboxAnswerError(f"the sandbox gave an answer of more than {max_bytes} bytes")


def _rpc_too_long(max_bytes: int) -> Exception:
    # connectrpc takes any other exception for a broken connection, after which a sandbox is asked again.
    return ConnectError(Code.DATA_LOSS, f"the sandbox gave an answer of more than {max_bytes} bytes")


async def _cut(chunks: AsyncIterator[bytes], max_bytes: int) -> AsyncIterator[bytes]:
    room = max_bytes
    async for chunk in chunks:
        yield chunk[:room]
        room -= len(chunk)
        if room <= 0:
            return


async def _refused(
    chunks: AsyncIterator[bytes], max_bytes: int, error: Callable[[int], Exception]
) -> AsyncIterator[bytes]:
    room = max_bytes
    async for chunk in chunks:
        room -= len(chunk)
        if room < 0:
            raise error(max_bytes)
        yield chunk


async def _messages(chunks: AsyncIterator[bytes], max_bytes: int) -> AsyncIterator[bytes]:
    """Pass messages of Connect's streams on: a byte of flags, the length in four, as many bytes."""
    head, rest = b"", 0
    async for chunk in chunks:
        at = 0
        while at < len(chunk):
            if rest:
                step = min(rest, len(chunk) - at)
                rest -= step
            else:
                step = min(5 - len(head), len(chunk) - at)
                head += chunk[at : at + step]
                if len(head) == 5:
                    rest, head = int.from_bytes(head[1:], "big"), b""
                if rest > max_bytes:
                    raise _rpc_too_long(max_bytes)
            at += step
        yield chunk
