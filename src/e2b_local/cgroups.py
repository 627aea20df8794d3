"""Control groups for boxes, v1 or v2, where this server may make them: limits the kernel always holds.

A box's group lies beside or below the server's own, so that limits set on the server bind its boxes too.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import pathlib
import subprocess
import time
from collections.abc import Mapping

_log = logging.getLogger(__name__)
_NOTES = "cgroups"
_PERIOD_US = 100_000
# A process that was just killed stays in its group until the kernel has taken it apart.
_REMOVE_S = 2.0
_RETRY_S = 0.02


@dataclasses.dataclass(frozen=True)
class GroupLimits:
    """What all processes of one box may use together."""

    memory_bytes: int
    """Files on memory filesystems and the kernel's own share included."""
    processes: int
    cpus: int


@dataclasses.dataclass(frozen=True)
class _Hierarchy:
    """A folder in which groups are made, and the files to write in each, by controller."""

    base: pathlib.Path
    settings: Mapping[str, tuple[tuple[str, str], ...]]


class Group:
    """The control groups of one box, one in each hierarchy."""

    def __init__(self, folders: list[pathlib.Path]) -> None:
        self._folders = folders

    def entering(self, command: list[str]) -> list[str]:
        """Return a command that joins the groups and then becomes `command`."""
        if not self._folders:
            return command
        # Joined by the process itself, before anything of the box exists: nothing is ever outside.
        join = "".join(f'echo 0 > "${{{n}}}" && ' for n in range(1, len(self._folders) + 1))
        files = [str(folder / "cgroup.procs") for folder in self._folders]
        return ["/bin/sh", "-c", f'{join}shift {len(files)} && exec "$@"', "sh", *files, *command]

    async def remove(self) -> None:
        """Remove the groups once their processes have ended."""
        deadline = time.monotonic() + _REMOVE_S
        while not _removed(self._folders) and time.monotonic() < deadline:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(_RETRY_S)


class Cgroups:
    """Makes a group for each box; where nothing can be written its groups are empty."""

    def __init__(self, state_dir: pathlib.Path, hierarchies: list[_Hierarchy]) -> None:
        self._state_dir = state_dir
        self._hierarchies = hierarchies
        self.holds = frozenset(name for each in hierarchies for name in each.settings)
        """Which of memory, pids and cpu the kernel holds."""

    @classmethod
    def find(
        cls,
        state_dir: pathlib.Path,
        limits: GroupLimits,
        proc: pathlib.Path = pathlib.Path("/proc/self"),
    ) -> Cgroups:
        """Find out, by trying, which controllers this process may use; each that it may not is left out."""
        found: list[_Hierarchy] = []
        for candidate in _candidates(proc, limits):
            usable = _tried(candidate, state_dir)
            taken = {name for each in found for name in each.settings}
            settings = {name: usable[name] for name in usable if name not in taken}
            if settings:
                found.append(_Hierarchy(candidate.base, settings))
        return cls(state_dir, found)

    def make(self, number: int) -> Group:
        """Make the groups of a box; a hierarchy that refuses now is left out with a warning."""
        folders = []
        for hierarchy in self._hierarchies:
            folder = hierarchy.base / f"{self._state_dir.name}-{number}"
            # Written down first: whatever kills this server now, the next start finds it.
            with (self._state_dir / _NOTES).open("a") as notes:
                notes.write(f"{folder}\n")
            try:
                folder.mkdir()
                _limit(folder, hierarchy.settings)
            except OSError as exc:
                _log.warning("no control group for box %d: %s", number, exc)
                _removed([folder])
            else:
                folders.append(folder)
        return Group(folders)


def clear_noted(state_dir: pathlib.Path) -> bool:
    """Remove the groups that a killed server's boxes were in; return whether none is left."""
    try:
        lines = (state_dir / _NOTES).read_text().splitlines()
    except OSError:
        return True
    folders = [path for path in map(pathlib.Path, lines) if path.name.startswith(f"{state_dir.name}-")]
    deadline = time.monotonic() + _REMOVE_S
    while not _removed(folders):
        if time.monotonic() > deadline:
            return False
        time.sleep(_RETRY_S)
    return True


def _removed(folders: list[pathlib.Path]) -> bool:
    left = False
    for folder in folders:
        try:
            folder.rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            left = True
    return not left


def _limit(folder: pathlib.Path, settings: Mapping[str, tuple[tuple[str, str], ...]]) -> None:
    for files in settings.values():
        (name, value), *optional = files
        (folder / name).write_text(value)
        for name, value in optional:  # swap is not accounted for everywhere
            with contextlib.suppress(OSError):
                if (folder / name).exists():
                    (folder / name).write_text(value)


def _tried(candidate: _Hierarchy, state_dir: pathlib.Path) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the settings that can be written in a group made here, none if no process can join one."""
    probe = candidate.base / f"{state_dir.name}-probe"
    usable = {}
    try:
        probe.mkdir()
    except OSError:
        return {}
    try:
        for name, files in candidate.settings.items():
            with contextlib.suppress(OSError):
                if (probe / files[0][0]).exists():
                    _limit(probe, {name: files})
                    usable[name] = files
        join = ["/bin/sh", "-c", 'echo 0 > "$1"', "sh", str(probe / "cgroup.procs")]
        if usable and subprocess.run(join, capture_output=True, check=False).returncode != 0:
            usable = {}
    finally:
        deadline = time.monotonic() + _REMOVE_S
        while not _removed([probe]) and time.monotonic() < deadline:
            time.sleep(_RETRY_S)
    return usable


def _candidates(proc: pathlib.Path, limits: GroupLimits) -> list[_Hierarchy]:
    v1 = {
        "memory": (
            ("memory.limit_in_bytes", str(limits.memory_bytes)),
            ("memory.memsw.limit_in_bytes", str(limits.memory_bytes)),
        ),
        "pids": (("pids.max", str(limits.processes)),),
        "cpu": (("cpu.cfs_quota_us", str(limits.cpus * _PERIOD_US)),),
    }
    v2 = {
        "memory": (("memory.max", str(limits.memory_bytes)), ("memory.swap.max", "0")),
        "pids": (("pids.max", str(limits.processes)),),
        "cpu": (("cpu.max", f"{limits.cpus * _PERIOD_US} {_PERIOD_US}"),),
    }
    own: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in (proc / "cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            own.update(dict.fromkeys(controllers.split(","), path))  # v2 names no controller: ""
    found = []
    for kind, root, mount, options in _mounted(proc):
        names = {"": v2} if kind == "cgroup2" else {name: {name: v1[name]} for name in v1 if name in options}
        for name, settings in names.items():
            inside = pathlib.PurePath(own.get(name, "/nowhere"))
            if not inside.is_relative_to(root):
                continue
            base = mount / inside.relative_to(root)
            found.append(_Hierarchy(base, settings))
            if kind == "cgroup2" and base != mount:
                # A v2 group with processes in it cannot hand controllers to groups below; one beside it can
                # have those that both have from above.
                found.append(_Hierarchy(base.parent, settings))
    return found


def _mounted(proc: pathlib.Path) -> list[tuple[str, str, pathlib.Path, list[str]]]:
    found = []
    with contextlib.suppress(OSError):
        for line in (proc / "mountinfo").read_text().splitlines():
            before, _, after = line.partition(" - ")
            kind, _, options = after.split(" ")[:3]
            if kind in ("cgroup", "cgroup2"):
                fields = before.split(" ")
                found.append((kind, fields[3], pathlib.Path(fields[4]), options.split(",")))
    return found
