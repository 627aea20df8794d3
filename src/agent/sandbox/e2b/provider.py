"""Making, finding and ending sandboxes at E2B, or at a server that speaks its protocol."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from e2b import ALL_TRAFFIC, SandboxQuery
from e2b import SandboxInfo as E2BInfo

from agent.errors import SandboxError, SandboxKeyError
from agent.sandbox.e2b.box import OwnedSandbox
from agent.sandbox.e2b.errors import meaning, translated
from agent.sandbox.lease import Lease
from agent.sandbox.provider import SandboxInfo, SandboxSpec
from agent.settings import Settings

_MOST_PAGES = 1_000
"""Of one listing; E2B's have up to 100 sandboxes each."""


class E2BProvider:
    """Implements `agent.sandbox.provider.Provider`; holds no connection, so any event loop may use it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def _options(self) -> Any:
        """Return the address and key of every request.

        All are given, so that the SDK reads no variable of the environment: settings have one reader.
        """
        settings = self._settings
        if settings.e2b_api_key is None:
            raise SandboxKeyError(
                "E2B_API_KEY is not set, and a sandbox is needed now. Set the key from your E2B dashboard in "
                "the environment (a served graph reads .env too), or run `e2b-local serve` and set the three "
                "variables it prints: that needs no key."
            )
        options: dict[str, Any] = {
            "api_key": settings.e2b_api_key.get_secret_value(),
            "request_timeout": settings.request_timeout_s,
            # Retries are the manager's: the SDK's own would multiply with them, and it cannot tell what for.
            "retries": 0,
            # With E2B_DEBUG the SDK would skip create, connect and kill and talk to a sandbox of its own.
            "debug": False,
        }
        if settings.e2b_api_url:
            options["api_url"] = settings.e2b_api_url
        if settings.e2b_sandbox_url:
            options["sandbox_url"] = settings.e2b_sandbox_url
        if settings.e2b_domain:
            options["domain"] = settings.e2b_domain
        return options

    async def create(self, spec: SandboxSpec) -> OwnedSandbox:
        """Make a sandbox; one that is paused when its lease runs out is woken by traffic."""
        with translated():
            sandbox = await OwnedSandbox.create(
                spec.template,
                timeout=spec.lease_s,
                metadata=dict(spec.metadata),
                lifecycle={"on_timeout": spec.on_timeout, "auto_resume": spec.on_timeout == "pause"},
                **_network(spec.internet),
                idempotency_key=spec.idempotency_key,
                **self._options(),
            )
        sandbox.lease = Lease(spec.lease_s)
        return sandbox

    async def connect(self, sandbox_id: str, lease_s: int) -> OwnedSandbox:
        """Connect with a stated timeout: the service's own default would be another lease than ours."""
        with translated():
            # The SDK's overloads name its own class; the classmethod behind them returns ours.
            sandbox: Any = await OwnedSandbox.connect(sandbox_id, timeout=lease_s, **self._options())
        assert isinstance(sandbox, OwnedSandbox)
        sandbox.lease = Lease(lease_s)
        return sandbox

    async def inspect(self, sandbox_id: str) -> SandboxInfo:
        """Ask the control plane, which wakes nothing."""
        with translated():
            info = await OwnedSandbox.get_info(sandbox_id, **self._options())
        return _info(info)

    async def cut_internet(self, sandbox_id: str, *, except_for: Sequence[str] = ()) -> None:
        """Deny traffic out of the sandbox; the update replaces what was allowed before."""
        with translated():
            await OwnedSandbox.update_network(sandbox_id, _rules(except_for), **self._options())

    def meaning(self, exc: Exception) -> SandboxError:
        """Say which of our errors an exception of the SDK is."""
        return meaning(exc)

    async def pause(self, sandbox_id: str) -> None:
        """Pause with memory; the SDK answers False where it is paused already."""
        with translated():
            await OwnedSandbox.pause(sandbox_id, **self._options())

    async def kill(self, sandbox_id: str) -> bool:
        """End the sandbox, running or paused."""
        with translated():
            return await OwnedSandbox.kill(sandbox_id, **self._options())

    async def find(self, metadata: Mapping[str, str]) -> AsyncIterator[SandboxInfo]:
        """Yield page by page."""
        with translated():
            pages = OwnedSandbox.list(query=SandboxQuery(metadata=dict(metadata)), **self._options())
        for _ in range(_MOST_PAGES):
            if not pages.has_next:
                return
            with translated():
                items = await pages.next_items()
            for item in items:
                yield _info(item)
        raise SandboxError(f"the sandbox service's list has no end: {_MOST_PAGES:,} pages were read")


def _info(info: E2BInfo) -> SandboxInfo:
    return SandboxInfo(info.sandbox_id, info.state.value, info.metadata, info.started_at, info.end_at)


def _network(internet: str | Sequence[str]) -> dict[str, Any]:
    if isinstance(internet, str):
        return {"allow_internet_access": internet == "on"}
    return {"network": _rules(internet)}


def _rules(hosts: Sequence[str]) -> Any:
    # What is allowed wins over what is denied.
    denied = {"deny_out": [ALL_TRAFFIC]}
    return denied | {"allow_out": list(hosts)} if hosts else denied
