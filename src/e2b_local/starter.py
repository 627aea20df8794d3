"""Giving a sandbox its box: from the pool or new, with its variables and, where it has any, its files."""

from __future__ import annotations

import pathlib

from e2b_local.agent_client import BoxGoneError
from e2b_local.archives import restore
from e2b_local.box import Box, BoxStartError
from e2b_local.errors import ApiError
from e2b_local.inbox.wire import OpError
from e2b_local.pool import Pool
from e2b_local.sandbox import Request


class Starter:
    """Starts boxes for sandboxes and counts those that are being started."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.starting = 0

    async def start(self, sandbox_id: str, request: Request, archive: pathlib.Path | None = None) -> Box:
        """Return a box that is ready for its sandbox.

        Raises:
            ApiError: 500, it could not be started; nothing of it is left.
        """
        self.starting += 1
        try:
            box = await self._pool.take()
            try:
                if archive is not None:
                    await restore(box, archive)
                if request.egress is not None:
                    await box.set_internet(request.egress)
                named = {"E2B_SANDBOX_ID": sandbox_id, "E2B_TEMPLATE_ID": request.template}
                await box.agent.call("configure", envs={**named, **request.envs})
            except BaseException:
                await box.kill()
                raise
        except (BoxStartError, OpError, OSError) as exc:
            raise ApiError(500, f"Failed to start sandbox: {exc}") from exc
        except BoxGoneError as exc:
            raise ApiError(500, "Failed to start sandbox: it ended while it started") from exc
        finally:
            self.starting -= 1
        return box
