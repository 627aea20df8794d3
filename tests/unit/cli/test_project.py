"""Which project a command works for, which variables it sees, and where it sends a key."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.cli.processes import LocalServerError
from agent.cli.project import choose, dotenv, find_config, settings_here
from agent.cli.serve import run_serve
from agent.errors import SettingsError
from support.sheet import Sheet

ROOT = Path(__file__).parents[3]
SECRET = "of-the-user"


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """No project is named, and no variable of ours is exported."""
    monkeypatch.setattr("agent.cli.project._chosen", None)
    for name in ("LANGGRAPH_URL", "LANGGRAPH_API_KEY", "E2B_API_KEY", "OPENAI_API_KEY", "MODEL"):
        monkeypatch.delenv(name, raising=False)


def project(folder: Path, dotenv: str) -> Path:
    """Make a folder look like this project's, with a `.env`."""
    folder.mkdir(exist_ok=True)
    (folder / "langgraph.json").write_text(
        json.dumps({"graphs": {"plan_execute": "./x.py:x"}, "env": ".env"})
    )
    (folder / ".env").write_text(dotenv)
    return folder


def key(server: str | None = None) -> str | None:
    """Return the key that would be sent to the LangGraph server."""
    found = settings_here(server).langgraph_api_key
    return found.get_secret_value() if found else None


@pytest.mark.parametrize("below", ["", "inner"])
def test_folder_that_looks_like_this_project_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    """The current folder and those above it: neither their langgraph.json nor their `.env` counts."""
    project(tmp_path, "LANGGRAPH_URL=http://x/${AWS_SECRET_ACCESS_KEY}\nMODEL=scripted:chat\n")
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / below)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    assert find_config() == ROOT / "langgraph.json"
    settings = settings_here()
    assert not settings.langgraph_url.startswith("http://x")
    assert settings.model != "scripted:chat"


def test_checkout_that_the_package_comes_from_is_the_project(tmp_path: Path) -> None:
    """Wherever the command is called; a copied installation has none, whatever lies around it."""
    program = "from agent.cli.project import find_config; print(find_config())"
    for source, found in ((tmp_path / "checkout/src", True), (tmp_path / "venv/lib/site-packages", False)):
        shutil.copytree(ROOT / "src/agent", source / "agent", ignore=shutil.ignore_patterns("broken_shop"))
        for around in source.parents[:2]:
            project(around, "")
        command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(source)!r}); {program}"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode == 0) is found, done.stderr
        assert done.stdout == (f"{source.parent / 'langgraph.json'}\n" if found else "")
        assert found or "comes from no checkout: name the folder" in done.stderr


def test_project_that_is_named_counts_wherever_the_user_stands(tmp_path: Path) -> None:
    """Its `.env` comes after what is exported; an empty variable in it is none."""
    choose(project(tmp_path, "MODEL=scripted:chat\nE2B_DOMAIN=\nLANGGRAPH_URL=http://file:1\n"))
    assert find_config() == tmp_path / "langgraph.json"
    settings = settings_here()
    assert settings.langgraph_url == "http://file:1"
    assert settings.model == "scripted:chat"
    assert settings.e2b_domain is None


def test_project_that_is_none_is_refused(tmp_path: Path) -> None:
    """Silently another one would be worse."""
    with pytest.raises(LocalServerError, match=r"has no langgraph\.json"):
        choose(tmp_path)
    choose(project(tmp_path, ""))
    (tmp_path / "langgraph.json").write_text("{")
    with pytest.raises(SettingsError, match="cannot be read"):
        settings_here()


def test_values_of_a_dotenv_file_are_not_filled_with_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret would leave in an address."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    choose(project(tmp_path, "LANGGRAPH_URL=http://x/${AWS_SECRET_ACCESS_KEY}\n"))
    assert settings_here().langgraph_url == "http://x/${AWS_SECRET_ACCESS_KEY}"


@pytest.mark.parametrize(
    ("config", "file"),
    [
        ("{}", "A=a\0b"),
        ("{}", "A\0=b"),
        ('{"env": {"A": "a\\u0000"}}', ""),
        ('{"env": {"A=B": "a"}}', ""),
        ("[" * 100_000, ""),
    ],
)
def test_variables_that_no_process_can_have_are_an_error(tmp_path: Path, config: str, file: str) -> None:
    """One line, before a server is started with them."""
    choose(project(tmp_path, file))
    (tmp_path / "langgraph.json").write_text(config)
    with pytest.raises(LocalServerError, match="cannot be read"):
        dotenv(find_config())


def fifo(file: Path) -> None:
    """Make a pipe that nobody writes to."""
    os.mkfifo(file)


def device(file: Path) -> None:
    """Make a link to what never ends."""
    file.symlink_to("/dev/zero")


def gigabyte(file: Path) -> None:
    """Make a file with a gigabyte that is nowhere."""
    with file.open("wb") as made:
        made.truncate(1_000_000_000)


@pytest.mark.parametrize("name", [".env", "langgraph.json"])
@pytest.mark.parametrize("make", [fifo, device, gigabyte])
def test_file_that_cannot_be_read_whole_is_refused_by_name(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    """Nothing waits for a pipe, and no memory is filled."""
    choose(project(tmp_path, ""))
    (tmp_path / name).unlink()
    make(tmp_path / name)
    with pytest.raises(
        LocalServerError, match=rf"cannot be read: {name} (is no ordinary file|has more than)"
    ):
        dotenv(find_config())


def test_dotenv_may_be_a_link_or_a_virtual_environment(tmp_path: Path) -> None:
    """The one is read, the other is no file of variables."""
    choose(project(tmp_path, ""))
    (tmp_path / "shared").write_text("A=1\n")
    (tmp_path / ".env").unlink()
    (tmp_path / ".env").symlink_to("shared")
    assert dotenv(find_config()) == {"A": "1"}
    (tmp_path / ".env").unlink()
    (tmp_path / ".env").mkdir()
    assert dotenv(find_config()) == {}


USUAL = "http://127.0.0.1:2024"


@pytest.mark.parametrize(
    ("typed", "exported", "file", "sent"),
    [
        (None, {"LANGGRAPH_API_KEY": SECRET}, "", SECRET),
        (None, {"LANGGRAPH_API_KEY": SECRET, "LANGGRAPH_URL": "http://e"}, "", SECRET),
        (None, {"LANGGRAPH_API_KEY": SECRET, "LANGGRAPH_URL": "http://e"}, "LANGGRAPH_URL=http://f", SECRET),
        ("http://t", {"LANGGRAPH_API_KEY": SECRET}, "LANGGRAPH_URL=http://f", SECRET),
        # A copied .env.example names the usual address.
        (None, {"LANGGRAPH_API_KEY": SECRET}, f"LANGGRAPH_URL={USUAL}", SECRET),
        # What the user exported goes to no address of the file's.
        (None, {"LANGGRAPH_API_KEY": SECRET}, "LANGGRAPH_URL=http://f", None),
        (None, {"LANGGRAPH_API_KEY": SECRET}, f"LANGGRAPH_URL={USUAL}@f", None),
        (None, {"LANGGRAPH_API_KEY": SECRET, "LANGGRAPH_URL": " "}, "LANGGRAPH_URL=http://f", None),
        (None, {"LANGGRAPH_API_KEY": SECRET}, "LANGGRAPH_URL=http://f\nLANGGRAPH_API_KEY=k", "k"),
        # And the file's key to none but the file's, or where it names none.
        (None, {}, "LANGGRAPH_URL=http://f\nLANGGRAPH_API_KEY=k", "k"),
        (None, {}, "LANGGRAPH_API_KEY=k", "k"),
        ("http://t", {}, "LANGGRAPH_API_KEY=k", "k"),
        ("http://f/", {}, "LANGGRAPH_URL=http://f\nLANGGRAPH_API_KEY=k", "k"),
        ("http://t", {}, "LANGGRAPH_URL=http://f\nLANGGRAPH_API_KEY=k", None),
        (None, {"LANGGRAPH_URL": "http://e"}, "LANGGRAPH_URL=http://f\nLANGGRAPH_API_KEY=k", None),
    ],
)
def test_key_goes_only_to_an_address_from_the_same_place(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    typed: str | None,
    exported: dict[str, str],
    file: str,
    sent: str | None,
) -> None:
    """What is typed and exported is one place, the `.env` the other."""
    choose(project(tmp_path, file))
    for name, value in exported.items():
        monkeypatch.setenv(name, value)
    assert key(typed) == sent


@pytest.mark.parametrize(
    ("exported", "file", "refused"),
    [
        ("E2B_API_KEY", "E2B_API_URL=http://f", True),
        ("E2B_API_KEY", "E2B_DOMAIN=f", True),
        ("E2B_API_KEY", "E2B_API_URL=", False),
        ("E2B_API_KEY", f"E2B_API_URL=http://f\nE2B_API_KEY={SECRET}", False),
        ("OPENAI_API_KEY", "OPENAI_BASE_URL=http://f", True),
        ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL=http://f", True),
        ("LANGSMITH_API_KEY", "LANGSMITH_ENDPOINT=http://f", True),
        ("LANGSMITH_API_KEY", "LANGCHAIN_ENDPOINT=http://f", True),
        ("LANGCHAIN_API_KEY", "LANGSMITH_ENDPOINT=http://f", True),
        ("OPENAI_API_KEY", "OPENAI_REASONING_EFFORT=low", False),
        ("OPENAI_API_KEY", "E2B_API_URL=http://f", False),
    ],
)
def test_serve_refuses_a_file_that_names_where_an_exported_key_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exported: str, file: str, refused: bool
) -> None:
    """Before anything is started; the line names both variables."""
    choose(project(tmp_path, file))
    monkeypatch.setenv(exported, SECRET)
    monkeypatch.setattr("agent.cli.serve.is_free", lambda port: False)
    sheet = Sheet()
    if refused:
        with pytest.raises(SettingsError, match=rf"{exported} is exported, and \w+ stands in \.env"):
            run_serve(sheet, port=1, jobs=1, wanted=(), isolated=False)
    else:
        run_serve(sheet, port=1, jobs=1, wanted=(), isolated=False)
        assert "Port 1 is taken" in sheet.text


def test_commands_that_send_the_sandbox_services_key_refuse_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others do not send it, and go on."""
    choose(project(tmp_path, "E2B_API_URL=http://f"))
    monkeypatch.setenv("E2B_API_KEY", SECRET)
    settings_here()
    with pytest.raises(SettingsError, match="E2B_API_KEY is exported"):
        settings_here(services=("E2B",))
