"""Settings: read once, validated, one clear line a wrong value."""

import re
from pathlib import Path

import pytest

from agent.context import Context
from agent.env_example import env_example
from agent.errors import InputError, SettingsError
from agent.sandbox.policy import SandboxPolicy
from agent.settings import Settings

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("value", ["0", "-1", "abc", "999999", "29", "1.5"])
def test_settings_refuse_a_lease_out_of_range(value: str) -> None:
    """A lease that cannot be used stops the start with one line that names the range."""
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({"SANDBOX_TIMEOUT": value})
    line = f"SANDBOX_TIMEOUT={value!r} cannot be used: a whole number from 30 to 86400 is needed"
    assert str(caught.value) == f"{line} (see .env.example)"


@pytest.mark.parametrize("name", ["scripted:nobody", "scripted:repair+nobody"])
def test_settings_refuse_a_script_that_is_not_there(name: str) -> None:
    """The start is stopped, not the first run; the line says which scripts there are."""
    with pytest.raises(SettingsError, match="no script 'nobody'; there are: chat, repair"):
        Settings.from_env({"MODEL": name})


def test_settings_report_every_wrong_value_at_once() -> None:
    """Several wrong values give as many lines, so that one look mends them all."""
    env = {
        "SANDBOX_TIMEOUT": "0",
        "E2B_API_URL": "localhost",
        "DEPLOYMENT": "a b",
        "OPENAI_REASONING_EFFORT": "x",
    }
    with pytest.raises(SettingsError) as caught:
        Settings.from_env(env)
    lines = str(caught.value).splitlines()
    assert sorted(line.split("=")[0] for line in lines) == sorted(env)


def test_settings_pass_on_only_variables_that_are_set_and_harmless() -> None:
    """A name that is not set, is none, or is a key to the deployment itself stops the start."""
    env = {"TOKEN": "t", "REGION": "r", "E2B_API_KEY": "k"}
    assert Settings.from_env(env | {"SANDBOX_ENVS": "TOKEN, REGION"}).envs == ["TOKEN", "REGION"]
    for names, problem in {
        "TOKEN,MISSING": "MISSING is not set",
        "TO KEN": "'TO KEN' is none",
        "TOKEN,E2B_API_KEY": "E2B_API_KEY stays in the server",
    }.items():
        with pytest.raises(SettingsError, match=problem):
            Settings.from_env(env | {"SANDBOX_ENVS": names})


def test_settings_take_hosts_for_the_internet() -> None:
    """Names, `*.name`, IPv4 addresses and blocks of them; what is none of these stops the start."""
    given = "Packages.Example, *.example.org,198.51.100.1,198.51.100.0/24"
    hosts = ["packages.example", "*.example.org", "198.51.100.1", "198.51.100.0/24"]
    assert Settings.from_env({"SANDBOX_INTERNET": given}).internet == hosts
    for wrong in (
        "https://packages.example",
        "packages.example:443",
        "198.51.100.400",
        "198.51.100.1/24",
        "*",
        "a..b",
        "a b",
    ):
        with pytest.raises(SettingsError, match=f"{re.escape(repr(wrong))} is no host"):
            Settings.from_env({"SANDBOX_INTERNET": f"packages.example,{wrong}"})


def test_a_run_names_hosts_among_those_of_the_deployment() -> None:
    """Fewer are its choice; another one, or what is none, is refused before there is a sandbox."""
    policy = SandboxPolicy(internet=["packages.example", "a.example"])
    assert policy.varied(Context(internet=["a.example"])).internet == ["a.example"]
    with pytest.raises(InputError, match="more than this deployment allows"):
        policy.varied(Context(internet=["b.example"]))
    with pytest.raises(InputError, match=r"context: internet: .*'http://a\.example' is no host"):
        Context(internet=["http://a.example"])


def test_settings_never_show_a_key() -> None:
    """Keys are shown neither by the settings nor by an error about another value."""
    env = {"OPENAI_API_KEY": "sk-secret", "E2B_API_KEY": "e2b_secret"}
    settings = Settings.from_env(env)
    with pytest.raises(SettingsError) as caught:
        Settings.from_env(env | {"SANDBOX_TIMEOUT": "0"})
    assert "secret" not in repr(settings) + str(caught.value)


def test_settings_refuse_a_short_key_without_showing_it() -> None:
    """A key that could be guessed is refused, and is not repeated."""
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({"ARTIFACT_KEY": "guess-me"})
    assert str(caught.value).startswith("ARTIFACT_KEY cannot be used: 16 characters or more are needed")
    assert "guess-me" not in str(caught.value)


def test_settings_take_an_empty_value_for_none() -> None:
    """`NAME=` in a .env file means the default, as .env.example says."""
    assert Settings.from_env({"SANDBOX_TIMEOUT": " ", "E2B_API_KEY": ""}) == Settings.from_env({})


def test_settings_strip_the_slash_of_an_address() -> None:
    """The SDK adds a slash of its own; two reach no route."""
    assert Settings.from_env({"E2B_API_URL": "http://127.0.0.1:9/"}).e2b_api_url == "http://127.0.0.1:9"


def test_env_example_is_what_the_settings_print() -> None:
    """.env.example lists every variable with default, range and meaning."""
    assert (ROOT / ".env.example").read_text() == env_example()


def test_env_example_holds_the_defaults() -> None:
    """Copying .env.example changes nothing."""
    lines = [line for line in env_example().splitlines() if line and not line.startswith("#")]
    assert Settings.from_env(dict(line.split("=", 1) for line in lines)) == Settings.from_env({})
