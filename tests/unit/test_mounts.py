"""Which folders on the way to a template's Python a sandbox can write."""

from __future__ import annotations

import pathlib

import pytest

from e2b_local.config import Limits
from e2b_local.mounts import Mounts
from e2b_local.template import Template

_ALWAYS = ["/", "/etc", "/home", "/tmp"]


def _mounts(root: str) -> Mounts:
    python = pathlib.Path(root, "bin/python")
    return Mounts(Template(python, (pathlib.Path(root),), "", pathlib.Path("x")), pathlib.Path("x"), Limits())


@pytest.mark.parametrize(
    ("root", "opened", "closed"),
    [
        ("/venv", [], []),
        ("/app/.venv", ["/app"], []),
        ("/opt/python/3.13", ["/opt"], ["/opt/python"]),
        ("/workspace/a/b/c", ["/workspace"], ["/workspace/a"]),
        ("/root/python/versions/3", [], ["/root"]),
        ("/home/me/project/.venv", [], ["/home/me"]),
        ("/home/user/project/.venv", ["/home/user"], ["/home/user/project"]),
        ("/tmp/x", [], []),
        ("/tmp/x/y", [], ["/tmp/x"]),
    ],
)
def test_mounts_open_only_what_leads_to_no_python(root: str, opened: list[str], closed: list[str]) -> None:
    """The first folder stays open where programs use it, and what a Python lies in beyond it is closed."""
    mounts = _mounts(root)
    own = tuple(pathlib.Path(name) for name in ("passwd", "group", "boot"))
    options = mounts.options(own)
    filesystems = {options[at + 1] for at, word in enumerate(options) if word == "--tmpfs"}
    read_only = [options[at + 1] for at, word in enumerate(options) if word == "--remount-ro"]
    assert mounts.kept == [*_ALWAYS, *opened]
    assert filesystems == {*_ALWAYS, *opened, *closed, "/dev/shm", "/run/e2b"}
    assert read_only == [*closed, "/dev"]
