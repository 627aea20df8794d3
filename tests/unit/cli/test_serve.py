"""What `serve` refuses before it starts anything."""

import fcntl
from pathlib import Path

import pytest

from agent.cli import exits
from agent.cli.project import choose
from agent.cli.serve import run_serve
from support.sheet import Sheet


@pytest.fixture(autouse=True)
def own_project(monkeypatch: pytest.MonkeyPatch) -> None:
    """A project that is named in a test is forgotten after it."""
    monkeypatch.setattr("agent.cli.project._chosen", None)


def test_serve_refuses_a_folder_that_is_served_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two development servers would overwrite each other's threads: one line, and nothing is started."""
    (tmp_path / "langgraph.json").write_text('{"graphs": {"plan_execute": "x"}}')
    choose(tmp_path)
    (tmp_path / ".langgraph_api").mkdir()
    monkeypatch.setattr("agent.cli.serve.is_free", lambda port: True)
    sheet = Sheet()
    with (tmp_path / ".langgraph_api/serve.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code = run_serve(sheet, port=0, jobs=1, wanted=(), isolated=False)
    assert code == exits.PLATFORM
    assert "Another `sandbox-agent serve` works on" in sheet.text.replace("\n", " ")
    assert "Sandboxes:" not in sheet.text
