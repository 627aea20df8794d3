"""Which variables a command sees: its own, then those of the project's `.env`."""

import json
from pathlib import Path

import pytest

from agent.cli.project import settings_here


def test_settings_come_from_the_environment_before_the_dotenv_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable that is set wins; one that is only in the file counts; an empty one in the file is none."""
    (tmp_path / "langgraph.json").write_text(json.dumps({"graphs": {"plan_execute": "x"}, "env": ".env"}))
    (tmp_path / ".env").write_text(
        "LANGGRAPH_URL=http://file:1\nLANGGRAPH_API_KEY=from-file\nMODEL=scripted:chat\nE2B_DOMAIN=\n"
    )
    inner = tmp_path / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    monkeypatch.setenv("LANGGRAPH_URL", "http://process:2")
    settings = settings_here()
    assert settings.langgraph_url == "http://process:2"
    assert settings.langgraph_api_key
    assert settings.langgraph_api_key.get_secret_value() == "from-file"
    assert settings.model == "scripted:chat"
    assert settings.e2b_domain is None
