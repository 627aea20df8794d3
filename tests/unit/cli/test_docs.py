"""The page about the client names what there is."""

import re
from pathlib import Path

import typer.main

from agent.cli import exits
from agent.cli.main import app

TEXT = (Path(__file__).parents[3] / "docs" / "client.md").read_text()


def test_page_names_every_command() -> None:
    """And no other: the table of commands is the command line's."""
    table = TEXT.partition("## The command line")[2].partition("\n\nThe server")[0]
    named = set(
        re.findall(r"`([a-z]+)", "".join(line.split("|")[1] for line in table.splitlines() if "|" in line))
    )
    assert named == set(typer.main.get_group(app).commands)  # type: ignore[attr-defined]


def test_page_has_the_exit_codes() -> None:
    """Scripts rely on them."""
    rows = dict(re.findall(r"^\| (\d+) \| (.+) \|$", TEXT, re.M))
    codes = {exits.OK, exits.FAILED, exits.USAGE, exits.PLATFORM, exits.INTERRUPTED}
    assert {int(code) for code in rows} == codes
    assert set(map(int, re.findall(r"\b\d+\b", exits.HELP))) == codes
