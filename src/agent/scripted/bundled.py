"""The bundled broken project: a small shop with two bugs, for the demo and for tests."""

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable


def bundled_project() -> dict[str, str]:
    """Return the project's files, path to text.

    Reads the package's own folder at each call, which blocks: a server would do it at its start.
    """
    return dict(_files(files("agent.scripted") / "broken_shop", ""))


def _files(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    # Installers compile what a wheel holds, data or not, hence __pycache__.
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _files(entry, f"{prefix}{entry.name}/")
        elif entry.is_file():
            yield f"{prefix}{entry.name}", entry.read_text(encoding="utf-8")
