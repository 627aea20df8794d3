"""The mark in what a sandbox passes on of a stream: read where it is one of ours, else text."""

import pytest

from agent.sandbox.output import BoundedText, Reception

NONCE = "0123456789abcdef"


def received(*pieces: str) -> tuple[str, object]:
    """Return what comes of a stream in pieces."""
    reception = Reception(NONCE, "/tmp/agent-output/1.stdout", 1_000_000)
    for piece in pieces:
        reception.add(piece)
    return reception.end()


@pytest.mark.parametrize(
    "words",
    [
        "9" * 5000 + " 0 0 0",
        "1 " + "9" * 5000 + " 0 0",
        "-5 0 0 0",
        "NaN 0 0 0",
        "1e9 0 0 0",
        "1 2 3",
        "1 2 3 4 5",
        "1 2 3 7",
        "\u0661 0 0 0",
        "",
    ],
)
def test_reception_takes_a_forged_mark_for_text(words: str) -> None:
    """Too many digits, signs, no numbers, fields too few or too many: the output stands, no error."""
    text = f"head\x1e{NONCE} {words}\x1etail"
    assert received(text) == (text, None)
    assert received(*text) == (text, None)


def test_reception_of_a_forged_mark_only_misstates_how_much_was_printed() -> None:
    """The path is ours, whatever a mark says."""
    text, file = received(f"head\x1e{NONCE} {'9' * 15} {'9' * 15} 7 0\x1etail")
    assert text == f"head\n… {'9' * 15} bytes left out …\ntail"
    assert getattr(file, "path", None) == "/tmp/agent-output/1.stdout"


def test_bounded_text_holds_few_objects_of_many_pieces() -> None:
    """A piece of one character takes as much memory as eighty."""
    kept = BoundedText(100_000)
    for _ in range(100_000):
        kept.add("é")
    assert len(kept._head) + len(kept._tail) < 5_000
    assert kept.text() == "é" * 100_000
