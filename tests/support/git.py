"""Git as a test's user runs it, with an identity of its own."""

import subprocess
from pathlib import Path

DIFF = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
"""A patch for a committed `a.py` with the line `x = 1`."""


def git(folder: Path, *arguments: str, check: bool = True) -> str:
    """Run git in a folder; return what it printed."""
    settings = ("user.name=test", "user.email=test@example.com", "protocol.file.allow=always")
    options = [word for setting in settings for word in ("-c", setting)]
    command = ["git", *options, *arguments]
    done = subprocess.run(command, cwd=folder, check=check, capture_output=True, text=True, timeout=60)
    return done.stdout


def commit(folder: Path) -> None:
    """Commit all there is."""
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x")
