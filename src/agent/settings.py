"""The deployment's settings, read from the environment once and validated.

This module is the only reader of `os.environ` in the package. `.env.example` is printed from the fields
below (`python -m agent.env_example`), so the two cannot drift apart.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from agent.errors import InputError, SettingsError
from agent.key_sources import SECRET_ENDINGS, SERVER, merged, refuse_mixed
from agent.repair.limits import PlanApproval
from agent.sandbox.policy import MAX_LEASE_S, Internet, Keep, Start
from agent.setting_types import (
    NEVER_PASSED,
    DeploymentName,
    HeaderKey,
    Hosts,
    HttpAddress,
    InternetWords,
    ModelName,
    Names,
    Origins,
    SigningKey,
    Variables,
    explained,
)

_RUN_CODE = frozenset({"run_python", "run_command", "start_command"})
"""Each can do what the others can."""


class Settings(BaseModel):
    """What a deployment sets; one field a variable, named by its alias."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    model: ModelName = Field(
        "openai:gpt-5.6-luna",
        alias="MODEL",
        description="The chat model, `provider:name` as init_chat_model knows it, or "
        "`scripted:repair+chat` (a script that stands in for a model: no key, no network).",
    )
    openai_api_key: SecretStr | None = Field(
        None, alias="OPENAI_API_KEY", description="Key for models of the provider `openai`."
    )
    openai_base_url: HttpAddress | None = Field(
        None,
        alias="OPENAI_BASE_URL",
        description="Another server that speaks OpenAI's protocol; empty means OpenAI's own.",
    )
    openai_use_responses_api: bool = Field(
        True,
        alias="OPENAI_USE_RESPONSES_API",
        description="true: the Responses API, which OpenAI recommends for tools with reasoning models; "
        "false: chat completions.",
    )
    openai_reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] = Field(
        "high",
        alias="OPENAI_REASONING_EFFORT",
        description="How hard an OpenAI reasoning model thinks: none, minimal, low, medium, high, xhigh or "
        "max. Not sent to models that do not reason; with chat completions always none, the one effort that "
        "OpenAI takes there beside tools.",
    )
    model_images: Literal["auto", "on", "off"] = Field(
        "auto",
        alias="MODEL_IMAGES",
        description="Whether the model is shown the newest charts. auto: where langchain knows that it takes "
        "images; on, for one that it does not know; off.",
    )
    e2b_api_key: SecretStr | None = Field(
        None,
        alias="E2B_API_KEY",
        description="Key for E2B, or the one that `e2b-local serve` prints. Needed when the first sandbox is "
        "made, not before.",
    )
    e2b_api_url: HttpAddress | None = Field(
        None, alias="E2B_API_URL", description="Another control plane than E2B's, such as e2b-local's."
    )
    e2b_sandbox_url: HttpAddress | None = Field(
        None,
        alias="E2B_SANDBOX_URL",
        description="Another address for traffic to sandboxes; e2b-local serves both at one address.",
    )
    e2b_domain: str | None = Field(
        None, alias="E2B_DOMAIN", description="Domain of a self-hosted E2B; empty means e2b.app."
    )
    sandbox_template: str = Field(
        "code-interpreter-v1",
        alias="SANDBOX_TEMPLATE",
        description="The E2B template sandboxes are made from; it must run the code interpreter.",
    )
    sandbox_installed: str = Field(
        "numpy, pandas and matplotlib",
        alias="SANDBOX_INSTALLED",
        max_length=2000,
        description="The Python packages that the template has, as the model is told; it can look for more.",
    )
    sandbox_timeout_s: int = Field(
        300,
        alias="SANDBOX_TIMEOUT",
        ge=30,
        le=MAX_LEASE_S,
        description="Lease in seconds: how long a sandbox lives unattended before it is paused; work "
        "renews it.",
    )
    sandbox_keep: Keep = Field(
        "run",
        alias="SANDBOX_KEEP",
        description="run: a sandbox ends with its run. thread: it is paused instead, and the thread's next "
        "turn finds its files and variables.",
    )
    sandbox_start: Start = Field(
        "eager",
        alias="SANDBOX_START",
        description="eager: the sandbox is made when a run starts. lazy: when a tool first needs it, so that "
        "a turn without code has none.",
    )
    sandbox_internet: InternetWords = Field(
        "setup",
        alias="SANDBOX_INTERNET",
        description="off, on, setup (only while a set-up command runs), or the hosts that can be reached, "
        "separated by commas. A run may ask for less, never for more.",
    )
    sandbox_envs: Variables = Field(
        "",
        alias="SANDBOX_ENVS",
        description="Names of this server's variables that commands and code in sandboxes are given, "
        "separated by commas; looked up anew each time, never in arguments. Empty: none.",
    )
    sandbox_idle_limit_s: int = Field(
        86_400,
        alias="SANDBOX_IDLE_LIMIT",
        ge=0,
        le=31_536_000,
        description="For `sandbox-agent sandboxes sweep`: a sandbox that was kept for its thread is ended "
        "when it has been paused for so long, in seconds.",
    )
    sandbox_human_limit_s: int = Field(
        604_800,
        alias="SANDBOX_HUMAN_LIMIT",
        ge=0,
        le=31_536_000,
        description="The same for one whose thread waits for a human's answer, in seconds.",
    )
    command_timeout_s: int = Field(
        120, alias="COMMAND_TIMEOUT", ge=1, le=3600, description="Limit of one shell command, in seconds."
    )
    code_timeout_s: int = Field(
        120, alias="CODE_TIMEOUT", ge=1, le=3600, description="Limit of one run of Python code, in seconds."
    )
    request_timeout_s: int = Field(
        30,
        alias="REQUEST_TIMEOUT",
        ge=1,
        le=300,
        description="Limit of one request to the sandbox service, in seconds; commands and code have "
        "limits of their own.",
    )
    max_output_bytes: int = Field(
        16_384,
        alias="MAX_OUTPUT_BYTES",
        ge=1024,
        le=1_048_576,
        description="How much of one tool's output the model is shown, in bytes; head and tail are kept.",
    )
    deployment: DeploymentName | None = Field(
        None,
        alias="DEPLOYMENT",
        description="Name that marks this deployment's sandboxes, so that another deployment on the same key "
        "never touches them. Empty: a random one, kept in `.langgraph_api/deployment`.",
    )
    max_model_calls: int = Field(
        50,
        alias="MAX_MODEL_CALLS",
        ge=1,
        le=1000,
        description="How often one turn of `agent` may call the model, from an input to its answer, with all "
        "the runs that resume it; at the limit it ends and says so.",
    )
    max_tool_calls: int = Field(
        100,
        alias="MAX_TOOL_CALLS",
        ge=1,
        le=5000,
        description="How many tools one turn of `agent` may call, counted alike; at the limit it ends and "
        "says so.",
    )
    max_run_s: int = Field(
        3600,
        alias="MAX_RUN_S",
        ge=10,
        le=86_400,
        description="How long one turn of `agent` may work, in seconds, counted alike and without a human's "
        "time; at the limit no further model call is made.",
    )
    max_context_tokens: int = Field(
        100_000,
        alias="MAX_CONTEXT_TOKENS",
        ge=4000,
        le=1_000_000,
        description="How long a thread of `agent` grows before its older part becomes a summary, in tokens, "
        "counted roughly. Well below what the model takes.",
    )
    ask_first_tools: Names | None = Field(
        None,
        alias="ASK_FIRST",
        description="Tools of `agent` whose calls a human approves before they run, separated by commas. "
        "run_python, run_command and start_command run code, and each can do what the others can: name all "
        "three. A run may add to them, never take away.",
    )
    plan_approval: PlanApproval = Field(
        "never",
        alias="PLAN_APPROVAL",
        description="What every run of `plan_execute` asks a human at least. each: about every plan; "
        "first: about its first plan; never: a run may ask nothing, if its context says so. A run whose "
        "context says nothing asks about every plan.",
    )
    public_url: HttpAddress | None = Field(
        None,
        alias="PUBLIC_URL",
        description="Where browsers reach this server: links to charts and files in answers begin with it. "
        "Empty: the address that `langgraph dev` is started on; elsewhere there are no links then.",
    )
    artifact_key: SigningKey | None = Field(
        None,
        alias="ARTIFACT_KEY",
        description="Secret that addresses of charts, files and uploads are signed with, 16 characters or "
        "more, the same for every process of a deployment. Empty: a random one, kept in "
        "`.langgraph_api/artifact_key`.",
    )
    artifact_ttl_s: int = Field(
        86_400,
        alias="ARTIFACT_TTL_S",
        ge=60,
        le=2_592_000,
        description="How long a signed address holds, in seconds; whoever may read the thread gets a fresh "
        "one.",
    )
    allowed_origins: Origins | None = Field(
        None,
        alias="ALLOWED_ORIGINS",
        description="Whose web pages may call this server, besides those of Studio, of localhost and of the "
        "server itself: origins such as https://chat.example.com, separated by commas, or * for all pages, "
        "where the server authenticates every request. Programs other than browsers need none.",
    )
    allowed_hosts: Hosts | None = Field(
        None,
        alias="ALLOWED_HOSTS",
        description="By which names this server may be addressed (the header Host, without its port), "
        "besides localhost and the name in PUBLIC_URL, separated by commas, or * for all. Empty: "
        "`langgraph dev` answers to no other name, every other server to all.",
    )
    served_at: HttpAddress | None = Field(None, alias="LANGGRAPH_API_URL")
    """Set by `langgraph dev` to its own address, whatever it was before; so not a setting of the user's."""
    server_variant: str | None = Field(None, alias="LANGSMITH_LANGGRAPH_API_VARIANT")
    """Set by `langgraph dev` to `local_dev`, whatever it was before; a platform sets others."""
    langgraph_url: HttpAddress = Field(
        "http://127.0.0.1:2024",
        alias="LANGGRAPH_URL",
        description="For the command line: the LangGraph server it talks to; `--server` wins.",
    )
    langgraph_api_key: HeaderKey | None = Field(
        None,
        alias="LANGGRAPH_API_KEY",
        description="For the command line: key of that server, if it asks for one.",
    )

    @property
    def internet(self) -> Internet:
        """Whether sandboxes reach the internet, as the policy wants it."""
        match self.sandbox_internet:
            case "off" | "setup" | "on" as word:
                return word
            case hosts:
                return hosts.split(",")

    @property
    def envs(self) -> list[str]:
        """The names of the variables that are passed on into sandboxes."""
        return self.sandbox_envs.split(",") if self.sandbox_envs else []

    def values_now(self, names: Iterable[str]) -> dict[str, str]:
        """Return what the environment says at this moment, for the names it has.

        The last wall before a sandbox: whatever a run's state or context asks for, only SANDBOX_ENVS counts.

        Raises:
            InputError: a name is not in SANDBOX_ENVS, or is one that stays in the server.
        """
        names = list(names)
        if refused := sorted(NEVER_PASSED.intersection(names) or set(names).difference(self.envs)):
            raise InputError(
                f"{refused[0]} is not among the variables that sandboxes are given (SANDBOX_ENVS)"
            )
        return {name: os.environ[name] for name in names if name in os.environ}

    def secrets_now(self) -> dict[str, str]:
        """Return what must not be shown, by name: what is passed on, and what is named like a key."""
        like_keys = [name for name in os.environ if name.endswith(SECRET_ENDINGS)]
        fields = {
            field.alias or name: value.get_secret_value()
            for name, field in type(self).model_fields.items()
            if isinstance(value := getattr(self, name), SecretStr)
        }
        named = {name: os.environ[name] for name in (*like_keys, *self.envs) if name in os.environ}
        return fields | named

    @staticmethod
    def refuse_mixed_sources(file: Mapping[str, str], services: Collection[str] | None = None) -> None:
        """Refuse a `.env` that names where a key of the environment's would be sent.

        Raises:
            SettingsError: it does; see `agent.key_sources.refuse_mixed`.
        """
        refuse_mixed(os.environ, file, services)

    @property
    def ask_first(self) -> list[str]:
        """The names of the tools whose calls are approved first."""
        return self.ask_first_tools.split(",") if self.ask_first_tools else []

    @property
    def free_of_approval(self) -> list[str]:
        """The tools that run code and ask nobody, where another that runs code asks."""
        asking = _RUN_CODE.intersection(self.ask_first)
        return sorted(_RUN_CODE - asking) if asking else []

    @property
    def in_development(self) -> bool:
        """Whether this is `langgraph dev`, which asks nobody who they are."""
        return self.server_variant == "local_dev"

    @property
    def public_address(self) -> str | None:
        """Where browsers reach this server, if it is known."""
        return self.public_url or self.served_at

    @classmethod
    def from_env(
        cls,
        env: Mapping[str, str] | None = None,
        *,
        defaults: Mapping[str, str] | None = None,
        server: str | None = None,
    ) -> Self:
        """Read and validate the settings.

        An empty variable counts as not set, as `.env` files leave them.

        Args:
            env: the variables to read; default the process's environment.
            defaults: variables that count only where `env` has none of that name; `LANGGRAPH_API_KEY` counts
                only beside the address it stands beside, see `agent.key_sources`.
            server: the LangGraph server's address as it was typed, which decides that; it is not returned.

        Returns:
            The validated settings.

        Raises:
            SettingsError: some values cannot be used; one line a variable, with what is allowed.
        """
        usual = {field.alias or name: field.default for name, field in cls.model_fields.items()}
        exported = os.environ if env is None else env
        source = merged(exported, defaults or {}, usual_server=usual[SERVER], server=server)
        try:
            settings = cls.model_validate(
                {name: source[name] for name in usual if source.get(name, "").strip()}
            )
        except ValidationError as exc:
            # No `from`: pydantic's text repeats the values, and a value may be a key.
            lines = [explained(error, cls.model_fields.values(), source) for error in exc.errors()]
            raise SettingsError("\n".join(lines)) from None
        if missing := [name for name in settings.envs if name not in source]:
            raise SettingsError(
                f"SANDBOX_ENVS={settings.sandbox_envs!r} cannot be used: {', '.join(missing)} is not set"
            )
        return settings
