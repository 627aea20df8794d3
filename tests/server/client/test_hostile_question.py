"""A question that would look like another, on a real terminal."""

import json
import os
import re
import sys
from pathlib import Path

from support.hostile_server import THREAD, HostileServer, serving
from support.terminal import Terminal

COMMAND = "echo X #\x1b[2K\x1b[1G    ls -la\r\x9b1G\u202e\nrm -rf /"
# What rich itself sends: colours, and the cursor that a spinner hides and moves.
OURS = re.compile(r"\x1b\[[\d;]*m|\x1b\[\?25[lh]|\x1b\[(?:2K|1A|1G)|\r")


def test_what_is_approved_was_seen(tmp_path: Path) -> None:
    """Nothing of the command reaches the terminal as it is; the answer names the hash of what was shown."""
    action = {"name": "run_command\x1b]0;title\x07", "args": {"command": COMMAND}}
    question = {"id": "q1", "value": {"action_requests": [action], "actions_hash": "abc"}}
    environment = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME"}}
    with serving(HostileServer("honest", state={"interrupts": [question]})) as server:
        command = [
            str(Path(sys.executable).with_name("sandbox-agent")),
            "resume",
            THREAD,
            "--server",
            server.url,
        ]
        with Terminal(command, env=environment, cwd=tmp_path) as terminal:
            terminal.expect("Allow this?")
            # Up to here nothing moved the cursor.
            shown = re.sub(r"\x1b\[[\d;]*m", "", terminal.raw).replace("\r\n", "\n")
            assert "    echo X #␛[2K␛[1G    ls -la␍<U+009B>1G<U+202E>" in shown
            assert "    rm -rf /" in shown
            assert "run_command␛]0;title␇" in shown
            assert all(each.isprintable() or each == "\n" for each in shown), ascii(shown)
            terminal.type("y\n")
            terminal.expect("Allow this?")  # as this server has it, the question stays open
            rest = OURS.sub("", terminal.raw)
            assert "\x1b" not in rest
        sent = [json.loads(each.body) for each in server.requests if each.path.endswith("/runs/stream")]
    assert sent[0]["command"] == {
        "resume": {"q1": {"decisions": [{"type": "approve"}], "actions_hash": "abc"}}
    }
