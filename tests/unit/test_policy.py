"""What a run may have: what it asks for, met with what the deployment gives."""

from typing import Any

import pytest

from agent.errors import InputError
from agent.sandbox.policy import SandboxPolicy
from agent.settings import Settings
from agent.wiring import sandbox_policy

HOSTS = ["a.example", "b.example"]


@pytest.mark.parametrize(
    ("asked", "allowed", "given"),
    [
        ("on", "on", "on"),
        ("on", HOSTS, HOSTS),
        ("on", "setup", "setup"),
        ("on", "off", "off"),
        ("setup", "on", "setup"),
        ("setup", "setup", "setup"),
        # While a set-up command runs it would have all of the internet, and not these hosts alone.
        ("setup", HOSTS, "off"),
        ("setup", "off", "off"),
        (HOSTS, "on", HOSTS),
        (HOSTS, ["b.example", "c.example"], ["b.example"]),
        (HOSTS, ["c.example"], "off"),
        (HOSTS, "setup", "off"),
        (HOSTS, "off", "off"),
        ("off", "on", "off"),
        ("off", HOSTS, "off"),
        ("off", "setup", "off"),
    ],
)
def test_internet_is_no_more_than_both_allow(asked: Any, allowed: Any, given: Any) -> None:
    """From state it is narrowed; asked for by context it is refused where it is more."""
    deployment = SandboxPolicy(internet=allowed)
    assert SandboxPolicy(internet=asked).met_with(deployment).internet == given

    class Context:
        internet = asked

    if given == asked:
        assert deployment.varied(Context()).internet == asked
    else:
        with pytest.raises(InputError, match="is more than this deployment allows"):
            deployment.varied(Context())


def test_variables_are_those_that_both_name() -> None:
    """Others vanish, in whatever order they were asked for."""
    deployment = SandboxPolicy(envs=["TOKEN", "REGION"])
    asked = SandboxPolicy(envs=["E2B_API_KEY", "REGION", "PATH"])
    assert asked.met_with(deployment).envs == ["REGION"]
    assert deployment.met_with(deployment) is deployment


@pytest.mark.parametrize(
    "data",
    [
        "policy",
        [1],
        {"envs": 5},
        {"lease_s": 10**9},
        {"template": "x" * 10_000},
        {"internet": "all"},
        {"no": 1},
    ],
    ids=str,
)
def test_state_that_holds_no_policy_is_refused(data: object) -> None:
    """With one line that names the key; an empty one means the deployment's."""
    with pytest.raises(InputError, match="no usable sandbox_policy"):
        SandboxPolicy.from_state(data)
    assert SandboxPolicy.from_state(None) is None


@pytest.mark.parametrize("name", ["HIDDEN", "E2B_API_KEY", "ARTIFACT_KEY", "PATH", "passed", ""])
def test_last_wall_gives_out_no_variable_that_is_not_named(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Whatever got past all else: only SANDBOX_ENVS counts, and some names never."""
    for each in ("PASSED", "HIDDEN", "E2B_API_KEY"):
        monkeypatch.setenv(each, f"value of {each}")
    settings = Settings.from_env({"SANDBOX_ENVS": "PASSED", "PASSED": "x"})
    assert settings.values_now(["PASSED"]) == {"PASSED": "value of PASSED"}
    with pytest.raises(InputError, match=rf"^{name} is not among"):
        settings.values_now(["PASSED", name])
    # Even settings that were made by hand.
    careless = settings.model_copy(update={"sandbox_envs": "E2B_API_KEY"})
    with pytest.raises(InputError, match=r"^E2B_API_KEY is not among"):
        careless.values_now(["E2B_API_KEY"])


def test_policy_of_the_settings_is_met_with_itself() -> None:
    """The deployment's own policy loses nothing."""
    policy = sandbox_policy(Settings.from_env({"SANDBOX_INTERNET": "a.example,b.example"}))
    assert SandboxPolicy.from_state(policy.model_dump()) == policy
    assert policy.model_copy().met_with(policy) == policy
