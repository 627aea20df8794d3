"""Words made once and kept in a file beside the development server's data."""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


async def kept_word(path: Path, make: Callable[[], str]) -> str:
    """Return the word kept in a file, making it if there is none.

    It suits one machine: processes on different disks would each make their own.

    Args:
        path: the file; its folder is made, and others than the owner cannot read it.
        make: called when there is none; of several processes that start at once, all return the same word.
    """
    return await asyncio.to_thread(_kept, path, make)


def _kept(path: Path, make: Callable[[], str]) -> str:
    with contextlib.suppress(FileNotFoundError):
        return path.read_text().strip()
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(make())
        # A link appears whole or not at all, and never replaces: nobody reads half a word, the first wins.
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        draft.unlink()
    return path.read_text().strip()
