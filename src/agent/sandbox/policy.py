"""How a thread's sandbox is kept, as a deployment sets it and a run may vary it.

The policy a run starts with is held in state. A resume sends no context, or another one; it cannot change
what was agreed when the run began.
"""

import contextlib
import ipaddress
import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from agent.errors import InputError, problems

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

EnvName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)]


class SandboxPolicy(BaseModel):
    """The rules one run's sandbox lives by."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    template: Annotated[str, Field(min_length=1, max_length=200)] = "code-interpreter-v1"
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
            raise InputError(f"context: {problems(exc, 'context')}") from exc
        if _met(varied.internet, self.internet) != varied.internet:
            asked, allowed = varied.internet, self.internet
            raise InputError(f"context: internet={asked!r} is more than this deployment allows ({allowed!r})")
        if more := sorted(set(varied.envs) - set(self.envs)):
            raise InputError(
                f"context: envs={more!r} is not among the variables this deployment passes on "
                f"(SANDBOX_ENVS: {', '.join(self.envs) or 'none'})"
            )
        return varied

    def met_with(self, deployment: Self) -> Self:
        """Return the policy with no more of the internet and of the variables than a deployment gives.

        A run's policy comes from state, which every client of the thread can write, and which may be older
        than the deployment's settings.
        """
        if self is deployment:
            return self
        envs = [name for name in self.envs if name in deployment.envs]
        return self.model_copy(update={"internet": _met(self.internet, deployment.internet), "envs": envs})

    @classmethod
    def from_state(cls, data: object) -> Self | None:
        """Return the policy that state holds, if it does; what it may do is another question (`met_with`).

        Raises:
            InputError: state holds something else; clients can write it.
        """
        if not data:
            return None
        try:
            return cls.model_validate(data)
        except ValidationError as exc:
            raise InputError(
                f"the thread's state holds no usable sandbox_policy ({problems(exc, 'sandbox_policy')}); "
                "it is written when a run begins: send the thread new input"
            ) from None


def _met(asked: Internet, allowed: Internet) -> Internet:
    """Return as much of what is asked as is allowed.

    `setup` opens all of the internet for a while, and a list some of it for long: neither contains the other.
    """
    if isinstance(asked, list) and isinstance(allowed, list):
        return [host for host in asked if host in allowed] or "off"
    if "off" in (asked, allowed):
        return "off"
    if allowed == "on" or asked == allowed:
        return asked
    return allowed if asked == "on" else "off"
