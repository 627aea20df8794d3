"""Pytest plugin for the suites: leaves out what deselected.txt names."""

from __future__ import annotations

import fnmatch
import os
import pathlib
import re

import pytest

_LIST = pathlib.Path(__file__).parent / "deselected.txt"
_LANGUAGE = re.compile(r"\[(\w+)\]")


def patterns(missing: set[str], listing: pathlib.Path = _LIST) -> dict[str, str]:
    """Return the patterns of node ids with the reason of each.

    Args:
        missing: languages without a kernel; reasons that begin with another one in brackets do not count.
        listing: the file that names them.
    """
    found: dict[str, str] = {}
    reason = ""
    for line in listing.read_text().splitlines():
        if line.startswith("#"):
            reason = line.lstrip("# ")
        elif line.strip():
            language = _LANGUAGE.match(reason)
            if language is None or language[1] in missing:
                found[line.strip()] = reason
    return found


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what a pattern names; each needs a reason."""
    listed = patterns(set(os.environ["SUITE_MISSING_KERNELS"].split()))
    assert all(listed.values()), "every pattern needs a reason above it"
    out = [item for item in items if any(fnmatch.fnmatch(item.nodeid, pattern) for pattern in listed)]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in out]
