"""The project's folder in the sandbox, and the folder beside it that holds what the graph needs to know.

Commands name both relative to each other: without isolation a local sandbox's home lies elsewhere on disk.
"""

import asyncio
import hashlib
import io
import json
import posixpath
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import BinaryIO

from agent.bounded import parsed_json
from agent.errors import SandboxAnswerError, SandboxError
from agent.repair.archive import MAX_ARCHIVE_BYTES, members, packed
from agent.repair.ignoring import CACHES, NO_SCOPE, Scope, condensed
from agent.repair.junit import MAX_BYTES as JUNIT_MAX_BYTES
from agent.repair.tree import MAX_LISTING_BYTES, Tree, listing_command, parsed, printable
from agent.sandbox.provider import Box, CommandResult
from agent.tools.paths import HOME

ROOT = f"{HOME}/project"
"""Where the project stands in the sandbox."""
META = f"{HOME}/.repair"
"""Beside it: what is needed to go on. The agent can write there; nothing in it is trusted unchecked."""
ARCHIVE = f"{META}/archive"

MAX_READ_BYTES = 20_000_000
MAX_NAMES_BYTES = 1_000_000
"""Of a list of what was left behind."""
MAX_MARKER_BYTES = 100_000
MAX_DONE = 100_000
BESIDE = "dependencies, version control or compiled code"
"""Why a file is no part of a patch that `Scope.ignored` names."""
MAX_OUTSIDE = 5_000
MAX_OUTSIDE_BYTES = 4_000_000
_WORK_S = 120
_UNPACK_S = 300

_UNWATCHED = (
    ".repair", ".tool-output", ".cache", ".ipython", ".jupyter", ".npm", ".yarn", ".cargo", ".rustup", ".m2",
    ".gradle", "go", ".config/go", ".config/matplotlib", ".local/share/jupyter", ".local/state",
    ".*_history",
)  # fmt: skip
"""In the home folder: caches of tools, no means to change what the tests do."""

_FREE = """\
while IFS= read -r -d '' p; do
  rm -rf -- "$p"
  while [[ $p == */* ]]; do p=${p%/*}; if [[ -L $p || ( -e $p && ! -d $p ) ]]; then rm -f -- "$p"; fi; done
done < ../.repair/paths"""
"""Makes room for files: also where a folder, or a link to somewhere else, has taken the place of one."""


_GIT_IGNORED = """\
: > ../.repair/ignored
command -v git > /dev/null || { printf no-git; exit 0; }
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_DIR=../.repair/git GIT_WORK_TREE=.
rm -rf ../.repair/git
env -u GIT_WORK_TREE git init -q --bare --template= || exit 1
timeout 20 git -c core.excludesFile=/dev/null check-ignore -z --stdin < ../.repair/paths > ../.repair/ignored
code=$?
[[ $code -le 1 ]] || { echo "what its .gitignore files name cannot be told ($code)" >&2; exit 1; }"""
"""With a repository of our own beside the project: one in it may not be what the client has."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The project's folder as it is at a moment."""

    tree: Tree
    """The files that belong to the project."""
    git_ignored: tuple[str, ...] = ()
    """New files that a `.gitignore` of the project names, and that are no part of it so."""
    without_git: bool = False
    """There is a `.gitignore`, and no git in the sandbox that could tell what it names."""


@dataclass(frozen=True, slots=True)
class Marker:
    """What the sandbox itself says of how far the work in it has come."""

    token: str = ""
    """Which preparation it went through."""
    done: int = 0
    """How many steps have been carried out in all."""
    task: str = ""
    """The task that carried out the last one. The same when a crashed visit is tried again; nobody in the
    sandbox can know it before."""
    report: str = ""


class Workspace:
    """Moves files in and out, and runs commands in the project.

    Args:
        box: the sandbox.
        redact: applied to what the owner's commands print; files are left as they are.
    """

    def __init__(self, box: Box, redact: Callable[[str], str] = str) -> None:
        self._box = box
        self._redact = redact

    @property
    def sandbox_id(self) -> str:
        """The sandbox's id."""
        return self._box.sandbox_id

    async def run(
        self, command: str, *, timeout_s: float, folder: str = ROOT, envs: Mapping[str, str] | None = None
    ) -> CommandResult:
        """Run a command of the project's owner; its failing is a result."""
        result = await self._box.run_command(command, timeout_s=timeout_s, cwd=folder, envs=envs)
        return replace(result, stdout=self._redact(result.stdout), stderr=self._redact(result.stderr))

    async def _sh(self, script: str, *, timeout_s: float = _WORK_S) -> str:
        """Run a script of ours in the project's folder, which is made if it is not there; return its output.

        Raises:
            SandboxError: it failed.
        """
        whole = f"mkdir -p project .repair && cd project || exit 1\n{script}"
        result = await self._box.run_command(whole, timeout_s=timeout_s, cwd=HOME, spooled=False)
        if result.exit_code != 0:
            why = result.stderr.strip()[-500:] or f"exit code {result.exit_code}"
            raise SandboxError(f"the project's folder could not be worked on: {why}")
        return result.stdout

    async def snapshot(self, scope: Scope = NO_SCOPE) -> Tree:
        """Return the files as they are now, also those that git would pass over."""
        await self._sh(listing_command("../.repair/listing", scope))
        return await self._listing(scope)

    async def look(self, scope: Scope) -> Seen:
        """Return the project's files as they are now, and those that git would pass over.

        Args:
            scope: of the project. What it knows counts, as a tracked file does in git, whatever is ignored.

        Raises:
            SandboxError: git could not tell what it ignores.
        """
        tree = await self.snapshot(scope)
        new = [path for path in tree if path not in scope.known]
        if not new or not any(posixpath.basename(path) == ".gitignore" for path in tree):
            return Seen(tree)
        # A name that begins with a colon would be git's magic, and end the command.
        await self._listed(f"./{path}" for path in new)
        if await self._sh(_GIT_IGNORED) == "no-git":
            return Seen(tree, without_git=True)
        found = (await self._box.read_file(f"{META}/ignored", max_bytes=MAX_LISTING_BYTES)).split(b"\0")
        named = {name.decode("utf-8", "surrogateescape").removeprefix("./") for name in found if name}
        ignored = tuple(path for path in new if path in named)
        return Seen({path: entry for path, entry in tree.items() if path not in {*ignored}}, ignored)

    async def _listing(self, scope: Scope | None = None) -> Tree:
        data = await self._box.read_file(f"{META}/listing", max_bytes=MAX_LISTING_BYTES)
        return await asyncio.to_thread(parsed, data, scope)

    async def put(
        self, files: Mapping[str, bytes], *, executable: Collection[str] = (), anew: bool = False
    ) -> None:
        """Write files (path → content), whatever stands in their way.

        Args:
            files: path → content.
            executable: those of them that are to be executable.
            anew: nothing does: the project's folder is empty.
        """
        if not files:
            return
        if not anew:
            await self.remove(files)
        odd = {path: data for path, data in files.items() if path != printable(path)}
        if plain := {f"{ROOT}/{path}": data for path, data in files.items() if path not in odd}:
            await self._box.write_files(plain)
        if odd:  # no request can name them
            await self._box.write_files({f"{META}/in.tar": await asyncio.to_thread(packed, odd)})
            await self._sh("tar --no-same-owner -xf ../.repair/in.tar")
        if marked := [path for path in files if path in executable]:
            await self._listed(marked)
            await self._sh("xargs -0r chmod a+x -- < ../.repair/paths")

    async def remove(self, paths: Collection[str]) -> None:
        """Delete files; those that are not there are passed over."""
        if paths:
            await self._listed(paths)
            await self._sh(_FREE)

    async def clear(self) -> None:
        """Empty the project's folder, and forget what an earlier run noted."""
        await self._sh("find . -mindepth 1 -delete; rm -rf ../.repair/baseline ../.repair/marker")

    async def read(self, paths: Collection[str], *, folder: str = ".") -> dict[str, bytes]:
        """Return the content of files that are there, by path; links and folders are left out.

        They travel as one archive, which is read in memory and never unpacked on the host. A file that its
        sandbox says is sparse comes without content.

        Raises:
            SandboxAnswerError: more than 20 MB in all.
        """
        if not paths:
            return {}
        await self._listed(paths)
        script = (
            "tar -C {} --null --no-recursion --ignore-failed-read -T ../.repair/paths -cf ../.repair/out.tar"
        )
        await self._sh(f"{script.format(shlex.quote(folder))} 2>/dev/null; true")
        data = await self._box.read_file(f"{META}/out.tar", max_bytes=MAX_READ_BYTES)
        return await asyncio.to_thread(_contents, data, frozenset(paths))

    async def _listed(self, paths: Iterable[str]) -> None:
        data = b"".join(path.encode("utf-8", "surrogateescape") + b"\0" for path in paths)
        await self._box.write_files({f"{META}/paths": data})

    async def marker(self) -> Marker:
        """Return what the sandbox says of itself; an empty marker where it says nothing sensible."""
        try:
            found = parsed_json(await self._box.read_file(f"{META}/marker", max_bytes=MAX_MARKER_BYTES))
        except (OSError, ValueError, SandboxAnswerError):
            return Marker()
        match found:
            case {"token": str(token), "done": int(done), "task": str(task), "report": str(report)}:
                return Marker(token, done, task, report) if 0 <= done < MAX_DONE else Marker()
        return Marker()

    async def mark(self, marker: Marker) -> None:
        """Note how far the work has come."""
        await self._box.write_files({f"{META}/marker": json.dumps(asdict(marker)).encode()})

    async def clock(self) -> str:
        """Return the sandbox's time, in seconds of the epoch.

        Raises:
            SandboxAnswerError: it says something else.
        """
        said = (await self._sh("date +%s.%N")).strip()
        if not re.fullmatch(r"[0-9]{1,12}\.[0-9]{1,9}", said):
            raise SandboxAnswerError("the sandbox does not tell the time: its `date` is not the system's")
        return said

    async def outside(self, since: str) -> list[str]:
        """Return the files in the home folder, but not in the project, that were written since a `clock`."""
        left = " -o ".join(f"-path './{name}'" for name in ("project", *_UNWATCHED))
        await self._sh(
            rf"cd .. && find . \( {left} \) -prune -o -type f -newerct @{since} -print0"
            rf" | head -z -n {MAX_OUTSIDE} > .repair/outside"
        )
        data = await self._box.read_file(f"{META}/outside", max_bytes=MAX_OUTSIDE_BYTES)
        found = data.split(b"\0", MAX_OUTSIDE)[:MAX_OUTSIDE]
        return sorted(printable(name.decode("utf-8", "surrogateescape")[2:]) for name in found if name)

    async def left_behind(self, since: str, scope: Scope, seen: Seen) -> dict[str, str]:
        """Return what was written since a `clock` in the project where no patch looks, with the reason.

        Caches that any run of the tests writes are left out. A folder with nothing else stands for its files.

        Args:
            since: the clock.
            scope: of the project.
            seen: what `look` showed of it.
        """
        caches = " -o ".join(f"-name {name}" for name in CACHES)
        await self._sh(
            rf"find . -type d \( {caches} \) -prune -o ! -type d -newerct @{since} -print0"
            rf" | head -c {MAX_NAMES_BYTES} > ../.repair/left"
        )
        # The last one may have been cut off.
        found = (await self._box.read_file(f"{META}/left", max_bytes=MAX_NAMES_BYTES)).split(b"\0")[:-1]
        written = {name.decode("utf-8", "surrogateescape").removeprefix("./") for name in found if name}
        ignored = condensed(written.intersection(seen.git_ignored), seen.tree)
        besides = {scope.ignored_folder(path) for path in written if scope.ignored(path)}
        told = dict.fromkeys(ignored, "git ignores it") | dict.fromkeys(besides, BESIDE)
        return {printable(name): told[name] for name in sorted(told)}

    async def drop_caches(self) -> None:
        """Delete compiled Python: it can be made to differ from its source."""
        await self._sh("find . -name __pycache__ -type d -prune -exec rm -rf {} +")

    async def junit(self) -> bytes:
        """Return the JUnit XML that the tests left; empty where there is none or it is too large to read."""
        size = f"$(stat -c %s ../.repair/junit.xml 2>/dev/null || echo {JUNIT_MAX_BYTES})"
        if (await self._sh(f"[[ {size} -lt {JUNIT_MAX_BYTES} ]] && echo yes || true")).strip() != "yes":
            return b""
        try:
            data = await self._box.read_file(f"{META}/junit.xml", max_bytes=JUNIT_MAX_BYTES)
        except (OSError, SandboxAnswerError):  # it was exchanged since it was measured
            return b""
        report = data.decode("utf-8", "surrogateescape")
        return (await asyncio.to_thread(self._redact, report)).encode("utf-8", "surrogateescape")

    # What follows is for a project that came as an archive.

    async def unpack(self) -> None:
        """Unpack the archive into the project's folder.

        Raises:
            SandboxError: it could not be unpacked.
        """
        # An archive has a folder for all of it, or not; one that has is stripped of it.
        await self._sh(_UNPACK, timeout_s=_UNPACK_S)

    async def keep_copy(self) -> None:
        """Keep a copy of what the project's folder holds."""
        await self._sh("rm -rf ../.repair/baseline && cp -a . ../.repair/baseline", timeout_s=_UNPACK_S)

    async def archive(self, digest: str) -> bytes:
        """Return the uploaded archive, if it is the one with this SHA-256.

        Raises:
            FileNotFoundError: there is none, or another one.
        """
        data = await self._box.read_file(ARCHIVE, max_bytes=MAX_ARCHIVE_BYTES)
        # Of what was read: the file may be another one a moment later.
        if await asyncio.to_thread(_sha256, data) != digest:
            raise FileNotFoundError("another archive")
        return data

    async def check_archive(self, digest: str) -> None:
        """Check that the uploaded archive is the one with this SHA-256, without taking it out.

        Raises:
            FileNotFoundError: there is none, or another one.
        """
        if await self._box.sha256_of(ARCHIVE, max_bytes=MAX_ARCHIVE_BYTES) != digest:
            raise FileNotFoundError("another archive")

    async def put_archive(self, data: bytes) -> None:
        """Write an archive to be unpacked later."""
        await self._box.write_files({ARCHIVE: data})

    async def upload_archive(self, source: BinaryIO) -> None:
        """Write an archive to be unpacked later, from a file of the host's."""
        await self._box.upload(ARCHIVE, source)

    async def kept_tree(self) -> Tree:
        """Return the files of the kept copy."""
        await self._sh(f"cd ../.repair/baseline && {listing_command('../listing')}")
        return await self._listing()

    async def keep_baseline(self, listing: bytes) -> None:
        """Write down what the project held at first."""
        await self._box.write_files({f"{META}/baseline.json": listing})

    async def baseline(self) -> bytes:
        """Return what `keep_baseline` wrote; empty where it is gone."""
        try:
            return await self._box.read_file(f"{META}/baseline.json", max_bytes=MAX_LISTING_BYTES)
        except FileNotFoundError:
            return b""

    async def restore(self, paths: Collection[str]) -> None:
        """Copy files from the kept copy."""
        if paths:
            await self.remove(paths)
            await self._sh("tar -C ../.repair/baseline --null -T ../.repair/paths -cf - | tar -xpf -")


def _contents(data: bytes, wanted: Collection[str]) -> dict[str, bytes]:
    """Return the wanted files of a tar that the sandbox made, whatever else it holds."""
    found: dict[str, bytes] = {}
    try:
        for member, content in members(io.BytesIO(data), max_bytes=MAX_READ_BYTES):
            path = posixpath.normpath(member.name)
            if member.isfile() and not member.issparse() and path in wanted:
                found[path] = content
    # Whatever tarfile stumbles over in it.
    except Exception as exc:
        raise SandboxAnswerError(f"the files to read did not come as a tar: {str(exc)[:200]}") from None
    return found


_UNPACK = """\
if ! tar --no-same-owner -xf ../.repair/archive 2> ../.repair/why; then
  find . -mindepth 1 -delete
  python3 -m zipfile -e ../.repair/archive . 2>> ../.repair/why || { cat ../.repair/why >&2; exit 1; }
fi
shopt -s dotglob nullglob
inner=(*)
if [[ ${#inner[@]} == 1 && -d ${inner[0]} && ! -L ${inner[0]} ]]; then
  mv -T "${inner[0]}" ../.repair/inner && mv ../.repair/inner/* . ; rmdir ../.repair/inner
fi
chmod -R u+rwX ."""


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
