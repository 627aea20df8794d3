"""langgraph.json: every path in it loads."""

import importlib.util
import json
from pathlib import Path

import pytest
from langgraph.pregel import Pregel

ROOT = Path(__file__).parents[2]
CONFIG = json.loads((ROOT / "langgraph.json").read_text())


@pytest.mark.parametrize("name", CONFIG["graphs"])
def test_every_graph_loads_as_the_server_loads_it(name: str) -> None:
    """The server loads the file by its path, a second copy beside the package's own module."""
    path, _, attribute = CONFIG["graphs"][name]["path"].partition(":")
    spec = importlib.util.spec_from_file_location(f"loaded_{name}", ROOT / path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    graph = getattr(module, attribute)
    assert isinstance(graph, Pregel)
    # The server brings its own; a graph with one of its own is refused.
    assert graph.checkpointer is None


@pytest.mark.parametrize("name", CONFIG["graphs"])
def test_every_graph_says_what_it_is_for(name: str) -> None:
    """Studio and assistants show the description."""
    assert CONFIG["graphs"][name]["description"]
