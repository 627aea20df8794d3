"""Where the values of the variables that a policy names come from."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from agent.redaction.secrets import Secrets
from agent.sandbox.owners import Owner

Environment = Callable[[Owner, Sequence[str]], Awaitable[Mapping[str, str]]]
"""Returns the values of the variables that a policy names; awaited before each command, so that a value which
changes between turns is the new one. It may look them up per thread or run."""


def watched(environment: Environment, secrets: Secrets) -> Environment:
    """Return a source of variables that lets `secrets` know each value before a sandbox gets it."""

    async def watching(owner: Owner, names: Sequence[str]) -> Mapping[str, str]:
        values = await environment(owner, names)
        secrets.remember(values)
        return values

    return watching
