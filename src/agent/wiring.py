"""Putting the parts together: the sandbox manager that the graphs, and your own, are wired with."""

from collections.abc import Mapping, Sequence

from agent.approvals.answers import AnswerWatch
from agent.approvals.seals import Seals
from agent.deployment import deployment_name
from agent.redaction.secrets import Secrets
from agent.sandbox.e2b import E2BProvider
from agent.sandbox.environment import Environment, watched
from agent.sandbox.manager import SandboxManager
from agent.sandbox.owners import Owner
from agent.sandbox.policy import SandboxPolicy
from agent.sandbox.provider import Provider
from agent.sandbox.watch import RunWatch
from agent.server.signing import signer
from agent.settings import Settings
from agent.super_steps import roomy
from agent.writes import Graph, WriteCheck, enduring


def guarded(graph: Graph, manager: SandboxManager) -> Graph:
    """Return a compiled graph with what its threads need where others than the program itself write to them.

    - A client's input or command that no state can take is refused before it is kept, and a key may be
      written twice in a step, so that the thread outlasts it (`agent/writes.py`).
    - An answer counts in the run that carries it (`agent/approvals/answers.py`).
    - A sandbox is paused while a human is asked, and ended when its run is rolled back
      (`agent/sandbox/watch.py`).
    - The graph's own recursion limit is the least (`agent/super_steps.py`).

    Args:
        graph: from `create_agent` or `StateGraph.compile`; it stays as it is.
        manager: of the sandboxes that its runs use.
    """
    graph = roomy(enduring(graph))
    return graph.with_config(callbacks=[AnswerWatch(WriteCheck(graph)), RunWatch(manager)])


def sandbox_manager(
    settings: Settings | None = None,
    *,
    environment: Environment | None = None,
    secrets: Secrets | None = None,
) -> SandboxManager:
    """Return a manager for E2B sandboxes; nothing is sent and no key is needed until one is acquired.

    Args:
        settings: default those of the environment.
        environment: where the values of the variables in `SANDBOX_ENVS` come from, such as a vault that knows
            the thread's user; default this process's own variables.
        secrets: what is redacted, told of each value before a sandbox gets it; default `known_secrets`.
    """
    settings = settings or Settings.from_env()
    secrets = secrets or known_secrets(settings)
    return SandboxManager(
        sandbox_provider(settings),
        policy=sandbox_policy(settings),
        deployment=lambda: deployment_name(settings),
        environment=watched(environment or _of_this_process(settings), secrets),
        secrets=secrets,
    )


def deployment_seals(settings: Settings) -> Seals:
    """Return the seals of the deployment, on the key that also signs addresses (ARTIFACT_KEY)."""

    async def key() -> bytes:
        return (await signer(settings)).key

    return Seals(key)


def known_secrets(settings: Settings) -> Secrets:
    """Return the secrets of the deployment: its own keys and what it passes on into sandboxes."""
    return Secrets(settings.secrets_now)


def _of_this_process(settings: Settings) -> Environment:
    async def values(_: Owner, names: Sequence[str]) -> Mapping[str, str]:
        return settings.values_now(names)

    return values


def sandbox_provider(settings: Settings) -> Provider:
    """Return E2B, or the server that speaks its protocol, as the settings say."""
    return E2BProvider(settings)


def sandbox_policy(settings: Settings) -> SandboxPolicy:
    """Return how the deployment keeps sandboxes where a run does not say otherwise."""
    return SandboxPolicy(
        template=settings.sandbox_template,
        keep=settings.sandbox_keep,
        start=settings.sandbox_start,
        lease_s=settings.sandbox_timeout_s,
        command_timeout_s=settings.command_timeout_s,
        code_timeout_s=settings.code_timeout_s,
        internet=settings.internet,
        envs=settings.envs,
    )
