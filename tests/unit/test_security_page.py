"""The threat model names tests; each of them is there."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "security.md").read_text()


def test_every_test_that_the_threat_model_names_is_there() -> None:
    """A file by its path below tests/, a test by its name in it."""
    named = re.findall(r"`([\w/]+/test_\w+\.py)(?:::(\w+))?`", PAGE)
    assert len(named) > 30
    for path, name in named:
        text = (TESTS / path).read_text()
        assert not name or re.search(rf"def {name}\b", text), f"{path} has no {name}"
