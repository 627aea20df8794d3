"""What a box under bubblewrap sees: its read-only system, and the memory filesystems it can write."""

from __future__ import annotations

import compileall
import os
import pathlib
import py_compile
import shutil
import uuid
from collections.abc import Iterable

from e2b_local.box import INBOX
from e2b_local.config import Limits
from e2b_local.internet import NAME_SERVER
from e2b_local.pytest_plugins import not_offered
from e2b_local.template import ETC, HOME, USER, Template

RUN_DIR = "/run/e2b"
# Directly below the root, which no program can rename.
INBOX_PARENT = "/.e2b-local"
_MB = 1024 * 1024
_RUN_BYTES = 64 * _MB
_ETC_BYTES = 16 * _MB
# A disk has room for a fixed number of files too: those without content cost memory of the host as well, for
# which the size of a filesystem does not stand. Twice as many as an ext4 disk of this size would hold.
_BYTES_A_FILE = 8192
_FEWEST_FILES = 2048
_COST_OF_A_FILE = 1536  # with the longest name
_MOST_TERMINALS = 256
_NOSUID, _NODEV, _NOEXEC = 2, 4, 8  # linux/mount.h
_SHARED = ("/home", "/tmp")
_OWN = ("/dev", "/etc", "/proc", "/run")


class Mounts:
    """Files that boxes share, made once, and the mounts of each box.

    A box can write anywhere, as in the cloud, but where what is the host's (`/usr`, Python) is mounted
    into it, read-only. An ordinary user's box owns its `/`, and could rename a folder above such a mount and
    put another in its place, from where the agent would import: so the first folders on the way to a mount
    are mounts too, which cannot be renamed.
    """

    def __init__(self, template: Template, state_dir: pathlib.Path, limits: Limits) -> None:
        self._template = template
        self._state_dir = state_dir
        self._limits = limits
        self._etc = state_dir / "etc"
        self._open, self._closed = _ways(template.roots)
        self._replaced: dict[pathlib.Path, pathlib.Path] = {}

    @property
    def kept(self) -> list[str]:
        """What a snapshot keeps: the filesystems that a box can write, but for its shared memory."""
        return [path for path in self._sizes if path not in ("/dev/shm", RUN_DIR)]

    @property
    def writable_bytes(self) -> int:
        """How many bytes the files of a box can cost at most; all of them are memory of the host."""
        sizes = self._sizes.values()
        return sum(sizes) + sum(map(_most_files, sizes)) * _COST_OF_A_FILE

    @property
    def limited(self) -> list[str]:
        """The arguments of `mount_limits` that bound the number of files, and of terminals, of a box."""
        arguments = []
        for target, size in self._sizes.items():
            arguments += [target, "tmpfs", str(_NOSUID | _NODEV), f"nr_inodes={_most_files(size)}"]
        # The machine has so many for all: one box must not have them all. The other options are bwrap's own.
        terminals = f"newinstance,ptmxmode=0666,mode=620,max={_MOST_TERMINALS}"
        return [*arguments, "/dev/pts", "devpts", str(_NOSUID | _NOEXEC), terminals]

    @property
    def _sizes(self) -> dict[str, int]:
        """The bytes of each filesystem that a box can write."""
        disk, shared = self._limits.disk_mb * _MB, self._limits.shared_mb * _MB
        fixed = {"/": disk, "/etc": _ETC_BYTES, "/home": disk, "/tmp": disk, "/dev/shm": shared}
        return fixed | dict.fromkeys(self._open, disk) | {RUN_DIR: _RUN_BYTES}

    def prepare(self) -> None:
        """Write the files every box shares."""
        self._etc.mkdir(parents=True, exist_ok=True)
        inbox = self._state_dir / "agent" / INBOX.name
        shutil.copytree(INBOX, inbox, ignore=shutil.ignore_patterns("__pycache__"))
        # Compiled once: boxes cannot write here, and each would spend half of its start on it. By hash, since
        # the times of copied files say nothing.
        compileall.compile_dir(
            inbox,
            stripdir=str(inbox.parent),
            prependdir=INBOX_PARENT,
            quiet=2,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
        for copied in (inbox.parent, inbox, *inbox.rglob("*")):
            # Whatever mask the package was installed under.
            copied.chmod(0o755 if copied.is_dir() else 0o644)
        for number, plugins in enumerate(not_offered()):
            path = plugins.declared_in.resolve()
            # Elsewhere there is nothing to hide: a sandbox does not see it.
            if any(path.is_relative_to(root) for root in (*self._template.roots, pathlib.Path("/usr"))):
                self._replaced[path] = self._etc / f"entry-points-{number}"
                self._replaced[path].write_text(plugins.without)
        (self._etc / "profile").write_text(self._template.login_profile())
        (self._etc / "hosts").write_text("127.0.0.1 localhost e2b.local\n::1 localhost\n")
        (self._etc / "hostname").write_text("e2b.local\n")
        (self._etc / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
        (self._etc / "resolv.conf").write_text(f"nameserver {NAME_SERVER}\n")

    def own_files(self, number: int, uid: int) -> tuple[pathlib.Path, ...]:
        """Write the files of one box; they may be removed once it has started."""
        passwd = self._etc / f"passwd-{number}"
        group = self._etc / f"group-{number}"
        passwd.write_text(
            "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
            f"{USER}:x:{uid}:{uid}::{HOME}:/bin/bash\n"
        )
        group.write_text(f"root:x:0:\nnogroup:x:65534:\n{USER}:x:{uid}:\n")
        boot_id = self._etc / f"boot-id-{number}"
        boot_id.write_text(f"{uuid.uuid4()}\n")
        return passwd, group, boot_id

    def options(self, own: tuple[pathlib.Path, ...]) -> list[str]:
        """Return the options of `bwrap` that mount all this, given what `own_files` wrote."""
        sizes = self._sizes
        mounts = _tmpfs("/", "1777", sizes["/"])
        mounts += ["--ro-bind", "/usr", "/usr"]
        for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
            path = pathlib.Path("/", name)
            # Root's links stay what they are; an ordinary user's box could replace them, but not a mount.
            if path.is_symlink() and os.geteuid() == 0:
                mounts += ["--symlink", str(path.readlink()), str(path)]
            elif path.is_dir():
                mounts += ["--ro-bind", str(path.resolve()), str(path)]
        mounts += ["--perms", "0755", "--dir", "/root"]
        for open_to_all in ("/opt", "/run"):
            mounts += ["--perms", "1777", "--dir", open_to_all]
        mounts += _tmpfs("/etc", "1777", sizes["/etc"])
        for pattern in ETC:
            for path in pathlib.Path("/etc").glob(pattern):
                mounts += ["--ro-bind-try", str(path), str(path)]
        for name in ("profile", "hosts", "hostname", "nsswitch.conf", "resolv.conf"):
            mounts += ["--ro-bind", str(self._etc / name), f"/etc/{name}"]
        mounts += ["--ro-bind", str(own[0]), "/etc/passwd", "--ro-bind", str(own[1]), "/etc/group"]
        mounts += ["--proc", "/proc", "--dev", "/dev"]
        # A box boots when it starts; the host's boot id would also tell which host it is on.
        mounts += ["--ro-bind", str(own[2]), "/proc/sys/kernel/random/boot_id"]
        for target in (*_SHARED, "/dev/shm"):
            mounts += _tmpfs(target, "1777", sizes[target])
        for target in sorted(self._open):
            mounts += _tmpfs(target, "0755" if target == HOME else "1777", sizes[target])
        for target in sorted(self._closed):
            mounts += _tmpfs(target, "0755", _MB)
        mounts += _tmpfs(RUN_DIR, "0700", _RUN_BYTES)
        mounts += ["--perms", "0755", "--dir", HOME]
        # Matplotlib keeps its list of fonts in a folder it must be able to write; the list itself is shared.
        mounts += ["--perms", "1777", "--dir", f"{RUN_DIR}/matplotlib"]
        for fonts in self._template.font_cache.glob("fontlist-*.json"):
            mounts += ["--ro-bind", str(fonts), f"{RUN_DIR}/matplotlib/{fonts.name}"]
        # After /home, since Python itself may live below a home folder.
        targets = {root: root for root in self._template.roots}
        targets[pathlib.Path(INBOX_PARENT)] = self._state_dir / "agent"
        for folder in sorted({parent for target in targets for parent in target.parents}):
            # bwrap would make them for root alone.
            mounts += ["--perms", "0755", "--dir", str(folder)]
        for root, source in targets.items():
            mounts += ["--ro-bind", str(source), str(root)]
        for path, instead in self._replaced.items():
            mounts += ["--ro-bind", str(instead), str(path)]
        for target in [*sorted(self._closed), "/dev"]:
            mounts += ["--remount-ro", target]
        return mounts


def _tmpfs(target: str, permissions: str, size: int) -> list[str]:
    return ["--perms", permissions, "--size", str(size), "--tmpfs", target]


def _most_files(size: int) -> int:
    return max(_FEWEST_FILES, size // _BYTES_A_FILE)


def _ways(roots: Iterable[pathlib.Path]) -> tuple[set[str], set[str]]:
    """Return the folders on the way to what is mounted: those that programs may write to, and those not.

    A Python in `/app/.venv` leaves `/app` open; one in `/home/me/project/.venv` closes all of `/home/me`.
    """
    opened: set[str] = set()
    closed: set[str] = set()
    for root in roots:
        above = [str(each) for each in root.parents][-2::-1]  # the one right below / first
        if not above or above[0] in _OWN:
            continue
        if above[0] in _SHARED:
            above = above[1:]
            is_open = above[:1] == [HOME]
        else:
            is_open = above[0] != "/root"
        (opened if is_open else closed).update(above[:1])
        closed.update(above[1:2] if is_open else [])
    mounted = set(map(str, roots))
    return opened - mounted, closed - mounted
