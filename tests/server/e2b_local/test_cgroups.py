"""Control groups: those of a sandbox, where the server may make them, and how a place for them is found."""

from __future__ import annotations

import pathlib
import time

import pytest
from e2b_code_interpreter import Sandbox

from e2b_local.cgroups import Cgroups, GroupLimits, clear_noted
from e2b_local.inbox.family import descendants
from support.e2b_process import E2BLocal

_MOUNTED = pathlib.Path("/sys/fs/cgroup")


def _groups(pids: set[int]) -> set[pathlib.Path]:
    """Return the control groups of these processes that were made for sandboxes."""
    names = {
        line.rpartition("/")[2]
        for pid in pids
        for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        if "/e2b-local-" in line
    }
    return {path for name in names for path in _MOUNTED.rglob(name)}


@pytest.mark.usefixtures("isolated")
def test_a_sandbox_has_groups_that_end_with_it(server: E2BLocal) -> None:
    """Each group holds what the log says it holds, and is removed after the kill."""
    if "limits: control groups" not in server.log():
        pytest.skip("this user cannot make control groups here")
    before = _groups(descendants(server.pid))
    sandbox = Sandbox.create(**server.options)
    made = _groups(descendants(server.pid)) - before
    assert made
    written = {path.name: path.read_text().strip() for group in made for path in group.glob("pids.max")}
    assert set(written.values()) <= {"514"}
    sandbox.kill()
    deadline = time.monotonic() + 30
    while any(group.exists() for group in made) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(group.exists() for group in made)


def _proc(folder: pathlib.Path, cgroup: str, mountinfo: str) -> pathlib.Path:
    folder.mkdir()
    (folder / "cgroup").write_text(cgroup)
    (folder / "mountinfo").write_text(mountinfo)
    return folder


@pytest.mark.parametrize(
    ("cgroup", "mountinfo"),
    [
        ("", ""),
        ("0::/a/own\n", "30 20 0:27 / {0} rw - cgroup2 cgroup2 rw,nsdelegate\n"),
        ("4:memory:/elsewhere\n", "30 20 0:27 /other {0} rw - cgroup cgroup rw,memory\n"),
        ("4:memory:/own\n0::/\n", "30 20 0:27 / {0}/missing rw - cgroup cgroup rw,memory\n"),
    ],
    ids=["none", "v2 without controllers", "outside its namespace", "not mounted"],
)
def test_what_cannot_be_used_is_left_out(tmp_path: pathlib.Path, cgroup: str, mountinfo: str) -> None:
    """Where a group takes no limits there are none, and the probe leaves nothing behind."""
    mounted, state = tmp_path / "fs", tmp_path / "e2b-local-x"
    (mounted / "a" / "own").mkdir(parents=True)
    state.mkdir()
    proc = _proc(tmp_path / "proc", cgroup, mountinfo.format(mounted))
    groups = Cgroups.find(state, GroupLimits(1 << 30, 100, 2), proc)
    assert groups.holds == frozenset()
    assert groups.make(1).entering(["true"]) == ["true"]
    assert sorted(path.name for path in mounted.rglob("*")) == ["a", "own"]


def test_left_groups_are_removed_by_their_notes_alone(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the notes name is removed if it bears the server's name; a group still in use is reported."""
    monkeypatch.setattr("e2b_local.cgroups._REMOVE_S", 0.1)
    state = tmp_path / "e2b-local-x"
    state.mkdir()
    assert clear_noted(state)
    left, foreign = tmp_path / "e2b-local-x-1", tmp_path / "other-1"
    for folder in (left, foreign):
        folder.mkdir()
    (state / "cgroups").write_text(f"{left}\n{foreign}\n{tmp_path / 'e2b-local-x-2'}\n")
    assert clear_noted(state)
    assert not left.exists()
    assert foreign.exists()
    (left / "busy").mkdir(parents=True)
    assert not clear_noted(state)
