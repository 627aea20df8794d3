"""How a thread's sandbox is kept, as a deployment sets it and a run may vary it.

The policy a run starts with is held in state. A resume sends no context, or another one; it cannot change
what was agreed when the run began.
"""

import contextlib
import ipaddress
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from agent.errors import InputError

MAX_LEASE_S = 86_400
"""E2B's longest lifetime of a sandbox (pro accounts; one hour on the hobby plan)."""

Keep = Literal["run", "thread"]
Start = Literal["eager", "lazy"]
LeaseS = Annotated[int, Field(ge=30, le=MAX_LEASE_S)]
TimeoutS = Annotated[int, Field(ge=1, le=3600)]


def host_rule(value: str) -> str:
    """Return what names hosts: a name, a name after `*.`, an IPv4 address or a CIDR block of them.

    Raises:
        ValueError: it is none of these, such as an address with a scheme or a port.
    """
    with contextlib.suppress(ValueError):
        return str(ipaddress.IPv4Network(value)).removesuffix("/32")
    if not _HOST_NAME.fullmatch(value):
        raise ValueError(f"{value!r} is no host: a name, *.name, an IPv4 address or a CIDR block is")
    return value.lower()


_HOST_NAME = re.compile(r"(\*\.)?([a-z0-9_-]{1,63}\.)*(?=[a-z0-9-]*[a-z])[a-z0-9-]{1,63}", re.IGNORECASE)

HostRule = Annotated[str, AfterValidator(host_rule)]
Internet = Literal["off", "setup", "on"] | Annotated[list[HostRule], Field(min_length=1, max_length=100)]

EnvName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]

_WIDTH = {"off": 0, "setup": 1, "on": 3}


class SandboxPolicy(BaseModel):
    """The rules one run's sandbox lives by."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    template: str = "code-interpreter-v1"
    keep: Keep = "run"
    """`run`: ended when the run ends. `thread`: paused, with files and variables for the next turn."""
    start: Start = "eager"
    """`eager`: made when the run starts. `lazy`: when a tool first needs it."""
    lease_s: LeaseS = 300
    command_timeout_s: TimeoutS = 120
    code_timeout_s: TimeoutS = 120
    internet: Internet = "setup"
    """`setup`: only while a set-up command runs; a list names the hosts that can be reached."""
    envs: Annotated[list[EnvName], Field(max_length=100)] = []
    """Names of variables that each command and cell is given; their values are looked up each time."""

    def internet_at_creation(self, *, setup: bool) -> Literal["off", "on"] | list[str]:
        """Return what a new sandbox is given of the internet.

        Args:
            setup: a set-up command will run in it.
        """
        if self.internet == "setup":
            return "on" if setup else "off"
        return self.internet

    def varied(self, context: Any) -> Self:
        """Return the policy with what the run's context says otherwise.

        Args:
            context: an object with attributes named like the policy's fields; None means no word on it.

        Raises:
            InputError: a value is not allowed, or would give more of the internet or of the environment than
                the deployment does.
        """
        said = {name: getattr(context, name, None) for name in type(self).model_fields}
        wanted = {name: value for name, value in said.items() if value is not None}
        if not wanted:
            return self
        try:
            varied = type(self).model_validate(self.model_dump() | wanted)
        except ValidationError as exc:
            lines = (f"context: {error['loc'][0]}: {error['msg']}" for error in exc.errors())
            raise InputError("\n".join(lines)) from exc
        if not varied._within(self.internet):
            asked, allowed = varied.internet, self.internet
            raise InputError(f"context: internet={asked!r} is more than this deployment allows ({allowed!r})")
        if more := sorted(set(varied.envs) - set(self.envs)):
            raise InputError(
                f"context: envs={more!r} is not among the variables this deployment passes on "
                f"(SANDBOX_ENVS: {', '.join(self.envs) or 'none'})"
            )
        return varied

    def _within(self, allowed: Internet) -> bool:
        if isinstance(self.internet, list) and isinstance(allowed, list):
            return set(self.internet) <= set(allowed)
        return _width(self.internet) <= _width(allowed)

    @classmethod
    def from_state(cls, data: Mapping[str, Any] | None) -> Self | None:
        """Return the policy that state holds, if it does."""
        return cls.model_validate(data) if data else None


def _width(internet: Internet) -> int:
    return 2 if isinstance(internet, list) else _WIDTH[internet]
