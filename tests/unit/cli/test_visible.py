"""Foreign text on its way to the terminal: what moves, hides or turns is shown, and not obeyed."""

import io
import unicodedata

import pytest
from rich.table import Table
from rich.text import Text as PlainText

from agent.cli.screen import Screen
from agent.cli.visible import Text, VisibleConsole, VisibleStream, code, cut, one_line, visible
from support.sheet import TerminalFile

HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
OVERWRITTEN = "echo X #\x1b[2K\x1b[1G    ls -la"
ODD = "\x1b]52;c;bHM=\x07\x1b]8;;http://e\x1b\\\x1bP\x9b2J\r\b\x00\x7f\x85\u202e\u2066\u200f\u061c\u200b\u2028\ufeff"


def sheet() -> tuple[Screen, io.StringIO]:
    """Return a screen that takes itself for a terminal, without colours, and what it writes."""
    file = io.StringIO()
    return Screen(
        VisibleConsole(file=file, force_terminal=True, width=200, color_system=None), ask=False
    ), file


def assert_visible(text: str) -> None:
    """See that a terminal would write all of it, and obey nothing."""
    hidden = [each for each in text if each != "\n" and unicodedata.category(each) in HIDDEN]
    assert not hidden, ascii(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (OVERWRITTEN, "echo X #␛[2K␛[1G    ls -la"),
        ("a\rb\bc\x7f\x00\x07", "a␍b␈c␡␀␇"),
        ("\x9b2J\x85", "<U+009B>2J<U+0085>"),
        ("a\u202eb\u2069\u200f\u061c", "a<U+202E>b<U+2069><U+200F><U+061C>"),
        ("a\u200bb\ufeff\xad\u2060", "a<U+200B>b<U+FEFF><U+00AD><U+2060>"),
        ("\U000e0041\U000e0100\ufe0f", "<U+E0041><U+E0100><U+FE0F>"),
        ("a\u2028b\u2029", "a<U+2028>b<U+2029>"),
        ("\ud800\u3164\u2800", "<U+D800><U+3164><U+2800>"),
        ("e" + "\u0301" * 6, "e" + "\u0301" * 5 + "<U+0301>"),
        ("\u0e01" + "\u0e47" * 7, "\u0e01" + "\u0e47" * 5 + "<U+0E47>" * 2),
        ("rm\u200d -rf", "rm<U+200D> -rf"),
        ("rm\ufe0f\u200d⚠", "rm<U+FE0F><U+200D>⚠"),
        ("⚠\ufe0f\ufe0f", "⚠\ufe0f<U+FE0F>"),
        ("rm\U0001d159 \U00016fe4-rf", "rm<U+1D159> <U+16FE4>-rf"),
        ("a\uffffb", "a<U+FFFF>b"),
    ],
)
def test_visible_shows_what_would_hide(text: str, shown: str) -> None:
    """Control characters as their pictures, all others by their code points; and not twice."""
    assert visible(text) == shown
    assert visible(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain\n\ttext ~",
        "naïve Straße 日本語 한국어 Ελληνικά עברית العربية हिन्दी",
        "⚠️ 1️⃣ 👩‍💻 ❤️‍🔥 👍🏽",
        "❤\ufe0f\u200d🔥 \U0001faff",
        "e\u0301",
        "a\xa0b",
    ],
)
def test_visible_leaves_ordinary_text_alone(text: str) -> None:
    """Line feeds and tabs, letters of all scripts, and emoji with what joins them."""
    assert visible(text) == text


def test_every_character_that_hides_is_shown() -> None:
    """Of all there are, by their category, wherever they stand."""
    for point in range(0x110000):
        each = chr(point)
        if unicodedata.category(each) in HIDDEN and each not in "\n\t":
            assert each not in visible(f"a{each}b"), f"U+{point:04X}"


def test_one_line_is_one_and_short() -> None:
    """A name cannot begin a line of its own, nor push the rest away."""
    assert one_line("a\nApproved.\tb") == "a␊Approved.␉b"
    assert one_line("x" * 1000) == f"{'x' * 134} … 1,000 characters … {'x' * 66}"
    assert cut("short", 5) == "short"


def test_screen_obeys_nothing_whichever_way_text_comes_in() -> None:
    """Lines, pieces, errors, questions' tables, code and what forgot to be made visible."""
    screen, file = sheet()
    screen.line(ODD)
    screen.line(Text.assemble("  ", (ODD, "red"), Text(ODD)))
    screen.write(ODD)
    screen.indented(f"a\n{ODD}", "  ")
    screen.said("agent> ", f"a\n{ODD}")
    screen.error(ODD)
    screen.heading(ODD)
    screen.show(PlainText(ODD))
    screen.show(code(ODD, "python"))
    table = Table(ODD, title=ODD)
    table.add_row(ODD)
    screen.show(table)
    assert_visible(file.getvalue())
    assert "[red]" in (screen.line("[red]:smile:[/]") or file.getvalue())
    assert ":smile:" in file.getvalue()


def test_spinner_obeys_nothing() -> None:
    """What a run says passes beside it; rich's own escape sequences move the cursor there."""
    file = TerminalFile()
    screen = Screen(VisibleConsole(file=file, force_terminal=True, width=200), ask=False)
    with screen.busy(f"{ODD}[red]") as busy:
        busy.update(f"\x1b]0;title\x07{ODD}", 1, 2)
        busy.detail(f"\x1b]0;title\x07{ODD}[bold]")
    assert "[red]" in file.getvalue()
    assert "\x1b]" not in file.getvalue()
    assert not {"\x07", "\x9b", "\x00", "\u202e"} & set(file.getvalue())


def test_line_cannot_begin_another() -> None:
    """A line feed in a name would write a line that looks like ours."""
    screen, file = sheet()
    screen.line("  x\nApproved automatically: --yes was given.")
    screen.said("you> ", "a\nagent> b")
    screen.error("no\nApproved.")
    assert file.getvalue().splitlines() == [
        "  x␊Approved automatically: --yes was given.",
        "you> a",
        "     agent> b",
        "no",
        "  Approved.",
    ]


def test_long_error_is_cut() -> None:
    """What a server says of a failure pushes nothing away."""
    screen, file = sheet()
    screen.error("x\n" * 5000)
    assert len(file.getvalue().splitlines()) == 42
    assert "more lines" in file.getvalue()


def test_stream_of_errors_is_made_visible() -> None:
    """Tracebacks, warnings and logs are written by others."""
    file = io.StringIO()
    assert VisibleStream(file).write(OVERWRITTEN) == len(OVERWRITTEN)
    assert file.getvalue() == "echo X #␛[2K␛[1G    ls -la"


def test_diff_for_a_program_is_as_it_is() -> None:
    """`show --diff | git apply` needs each byte; on a terminal it is a text like others."""
    screen, file = sheet()
    screen.raw("+a\r\n")
    assert file.getvalue() == "+a␍\n"
    plain = io.StringIO()
    Screen(VisibleConsole(file=plain), ask=False).raw("+a\r\n\x1b[2J\ud800")
    assert plain.getvalue() == "+a\r\n\x1b[2J?"
