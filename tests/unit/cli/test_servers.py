"""What the two servers are started with, and how they are found ready."""

from pathlib import Path

import pytest

from agent.cli.processes import LocalServerError
from agent.cli.project import absolute_config
from agent.cli.servers import E2BLocal, LangGraphDev, program


def test_absolute_config_makes_paths_absolute_and_drops_env(tmp_path: Path) -> None:
    """Import paths and everything that is no path stay as they are."""
    config = {
        "dependencies": [".", "requests"],
        "graphs": {
            "a": "./src/a.py:graph",
            "b": {"path": "../b.py:make", "description": "./"},
            "c": "pkg.c:g",
        },
        "http": {"app": "./web.py:app"},
        "python_version": "3.12",
        "env": ".env",
    }
    assert absolute_config(config, tmp_path) == {
        "dependencies": [str(tmp_path), "requests"],
        "graphs": {
            "a": f"{tmp_path}/src/a.py:graph",
            "b": {"path": f"{tmp_path.parent}/b.py:make", "description": str(tmp_path)},
            "c": "pkg.c:g",
        },
        "http": {"app": f"{tmp_path}/web.py:app"},
        "python_version": "3.12",
    }


def test_e2b_local_is_ready_when_all_three_variables_are_printed(tmp_path: Path) -> None:
    """With or without `export` and quotes; earlier lines of the log do not count."""
    server = E2BLocal(tmp_path)
    server.log.write_text("E2B_API_URL=http://127.0.0.1:1\nE2B_SANDBOX_URL=http://127.0.0.1:1\n")
    assert server._printed() is None
    with server.log.open("a") as log:
        log.write("export E2B_API_KEY='e2b_00'\nnoise\n")
    assert server._printed() == {
        "E2B_API_URL": "http://127.0.0.1:1",
        "E2B_SANDBOX_URL": "http://127.0.0.1:1",
        "E2B_API_KEY": "e2b_00",
    }


@pytest.mark.parametrize("isolated", [True, False])
def test_e2b_local_gives_up_isolation_only_when_told(tmp_path: Path, isolated: bool) -> None:
    """Plain processes are never a silent choice."""
    assert ("--no-isolation" in E2BLocal(tmp_path, isolated=isolated).command) is not isolated


def test_langgraph_dev_that_cannot_read_its_config_does_not_start(tmp_path: Path) -> None:
    """The error names the file."""
    config = tmp_path / "langgraph.json"
    config.write_text("{")
    server = LangGraphDev(config, tmp_path, port=1)
    with pytest.raises(LocalServerError, match=f"{config} cannot be read"):
        server.start()
    assert server.pid is None


def test_program_that_is_not_installed_says_how_to_install_it() -> None:
    """The extra that brings it is named."""
    with pytest.raises(LocalServerError, match=r"nothing-such is not installed.*\[local\]"):
        program("nothing-such")
