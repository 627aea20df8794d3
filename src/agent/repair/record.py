"""What a repair has changed by now, as state holds it, and the project's files as they follow from that."""

import asyncio
import hashlib
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent.errors import SandboxError
from agent.repair.baseline import Baseline
from agent.repair.changes import changes_of, held, key_of
from agent.repair.diff import unified_diff
from agent.repair.ignoring import condensed, folders_of
from agent.repair.tree import Entry, Tree, differing, entry_of, matches, printable
from agent.repair.workspace import Workspace

MAX_FILE_BYTES = 500_000
MAX_CHANGES_BYTES = 1_000_000
MAX_ORIGINALS_BYTES = 8_000_000
"""Of changed and deleted files as they were: both sides of a patch are held at once."""
_MAX_LISTED = 500
_LOOKS = 3
"""At the files, to put them right: what one look finds may be rules that hid others."""

State = Mapping[str, Any]


def expected(baseline: Baseline, state: State) -> Tree:
    """Return the files as state knows them: the baseline with the changes made, but for those left out."""
    tree = patched(baseline, state)
    return {path: entry for path, entry in tree.items() if printable(path) not in state["left_out"]}


def shown(baseline: Baseline, tree: Tree, state: State) -> Tree:
    """Return the files of a snapshot that are of the project, as the repair sees them.

    By-products are left out; a file that the set-up changed, and nobody since, counts as it was.
    """
    folders = tuple(name for name in state["by_products"] if name.endswith("/"))
    files = set(state["by_products"])
    found: Tree = {}
    for path, entry in tree.items():
        name = printable(path)
        if name in files or name.startswith(folders):
            continue
        same = state["setup_changed"].get(name) == entry.sha256 and path in baseline.tree
        found[path] = baseline.tree[path] if same else entry
    return found


async def settle(work: Workspace, baseline: Baseline, state: State) -> list[str]:
    """Make the files as state knows them, and return those that were not.

    They differ after a step that was cut short, in a sandbox that was made anew or fell back to an earlier
    state, and when a run goes on from an earlier checkpoint.
    """
    wanted, changes = expected(baseline, state), changes_of(state)
    found: set[str] = set()
    for _ in range(_LOOKS):
        now = shown(baseline, (await work.look(baseline.scope)).tree, state)
        wrong = differing(wanted, {p: e for p, e in now.items() if printable(p) not in state["left_out"]})
        found.update(wrong)
        changed = {path: data for path in wrong if (data := changes.get(path)) is not None}
        if gone := [path for path in wrong if path not in wanted]:
            await work.remove(gone)
        await baseline.put_back(work, [path for path in wrong if path in wanted and path not in changed])
        await work.put(changed, executable=[path for path in changed if wanted[path].executable])
        # With other rules, other files may be the project's.
        if not any(posixpath.basename(path) == ".gitignore" for path in wrong):
            break
    return [printable(path) for path in sorted(found)]


async def patch(work: Workspace, baseline: Baseline, state: State) -> Tree:
    """Change a project, as it was sent, the way `git apply` of the diff would; return its files then.

    Raises:
        SandboxError: the files are not what they should be.
    """
    changes = changes_of(state)
    wanted = patched(baseline, state)
    await work.remove([path for path, data in changes.items() if data is None])
    files = {path: data for path, data in changes.items() if data is not None}
    try:
        await work.put(files, executable=[path for path in files if wanted[path].executable])
    except OSError as exc:
        raise SandboxError(f"the patch could not be applied: {exc}") from exc
    if state["setup_command"]:
        # A file that it compiled can pass for that of a changed one of the same size, a moment later.
        await work.drop_caches()
    # What the patch has is its own, whatever the rules here say of it.
    now = (await work.look(baseline.scope.also(changes))).tree
    # All of them, where no set-up has been at work.
    of = changes if state["setup_command"] else {**wanted, **now}
    if wrong := [path for path in of if now.get(path) != wanted.get(path)]:
        raise SandboxError(f"the patch could not be applied: {wrong[0]!r} is not what it should be")
    return now


def patched(baseline: Baseline, state: State) -> Tree:
    """Return the files of the project, as it was sent, with the changes that state holds."""
    tree = dict(baseline.tree)
    for path, data in changes_of(state).items():
        if data is None:
            tree.pop(path, None)
        else:
            known = path in baseline.tree and baseline.tree[path].executable
            tree[path] = entry_of(data, executable=state["executable"].get(key_of(path), known))
    return tree


async def recorded(
    work: Workspace, baseline: Baseline, state: State, *, protect: Sequence[str] = ()
) -> dict[str, Any]:
    """Return what belongs into state of the files as they are now.

    Args:
        work: where they are.
        baseline: the files as they were sent.
        state: what is known of the set-up's traces.
        protect: globs of files whose change is no part of the repair.
    """
    now = shown(baseline, (await work.look(baseline.scope)).tree, state)
    was = baseline.tree
    changed = [path for path in differing(was, now) if not matches(path, protect)]
    left_out: dict[str, str] = {}
    room, room_before = MAX_CHANGES_BYTES, MAX_ORIGINALS_BYTES
    for path in changed:
        left = room - (now[path].size_bytes if path in now and not now[path].link else 0)
        left_before = room_before - (was[path].size_bytes if path in was else 0)
        if why := _unfit(path, was.get(path), now.get(path), min(left, left_before)):
            left_out[path] = why  # and takes no room from others
        else:
            room, room_before = left, left_before
    _leave_out_what_meets(left_out, was, changed)
    fit = [path for path in changed if path not in left_out]
    old = await baseline.read(work, [path for path in fit if path in was])
    new = await work.read([path for path in fit if path in now])
    # A file that vanished between the two looks is left to the next one.
    kept = [p for p in fit if (p in old or p not in was) and (p in new or p not in now)]
    diff = await asyncio.to_thread(
        unified_diff,
        {path: old[path] for path in kept if path in old},
        {path: new[path] for path in kept if path in new},
        executable_before=[path for path in kept if path in was and was[path].executable],
        executable_after=[path for path in kept if path in now and now[path].executable],
    )
    return {
        "changes": {key_of(p): held(new[p]) if p in new else None for p in kept},
        "executable": {
            key_of(p): now[p].executable for p in kept if p in now and _mode_is_news(was.get(p), now[p])
        },
        "left_out": {printable(path): left_out[path] for path in sorted(left_out)[:_MAX_LISTED]},
        "diff": diff,
    }


def _unfit(path: str, was: Entry | None, now: Entry | None, room: int) -> str:
    entries = [entry for entry in (was, now) if entry is not None]
    if ".git" in path.lower().split("/"):
        return "git takes no file of that name"
    if any(entry.link for entry in entries):
        return "it is, or was, a link"
    if any(not entry.sha256 for entry in entries):
        return "it cannot be read"
    if any(entry.size_bytes > MAX_FILE_BYTES for entry in entries):
        return f"it has more than {MAX_FILE_BYTES} bytes"
    return f"all changes together have more than {MAX_CHANGES_BYTES} bytes" if room < 0 else ""


def _leave_out_what_meets(left_out: dict[str, str], was: Tree, changed: Iterable[str]) -> None:
    """Leave out files where the project keeps one that was left out: a folder where it has a file or a link,
    or the other way round. No patch puts a file there.
    """
    staying = {path for path in left_out if path in was}
    folders = {parent for path in staying for parent in folders_of(path)}
    for path in changed:
        if path not in was and path not in left_out and (path in folders or staying & {*folders_of(path)}):
            left_out[path] = "the project keeps something else in its place"


def _mode_is_news(was: Entry | None, now: Entry) -> bool:
    return now.executable != (was.executable if was else False)


def by_products(baseline: Baseline, tree: Tree) -> dict[str, Any]:
    """Return what the set-up and the first test run left in the project, as state holds it."""
    new = [printable(path) for path in tree if path not in baseline.tree]
    return {
        # State stays small: where there are many, folders are named instead.
        "by_products": sorted(new) if len(new) <= _MAX_LISTED else condensed(new, baseline.tree),
        "setup_changed": {
            printable(path): tree[path].sha256
            for path in differing(baseline.tree, tree)
            if path in baseline.tree and path in tree
        },
    }


def by_products_again(baseline: Baseline, tree: Tree, state: State) -> dict[str, Any]:
    """Return the same for a set-up that ran again: names and contents may differ each time."""
    now = by_products(baseline, tree)
    return {
        "by_products": sorted({*state["by_products"], *now["by_products"]}),
        "setup_changed": {**state["setup_changed"], **now["setup_changed"]},
    }


def digest(baseline: Baseline, state: State) -> str:
    """Return what stands for the project with the patch: equal files have equal digests."""
    entries = sorted(patched(baseline, state).items())
    return hashlib.sha256(repr(entries).encode("utf-8", "surrogateescape")).hexdigest()[:32]
