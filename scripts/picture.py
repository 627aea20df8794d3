"""Draw docs/demo.svg: `sandbox-agent demo` as it runs on a terminal, approved at its question.

The program runs on a pseudo-terminal, an emulator keeps what it shows, and rich writes that as an SVG.
"""

import io
import os
import sys
from pathlib import Path

import pyte
from pyte.screens import Char
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from support.terminal import Terminal  # noqa: E402

COLUMNS, ROWS = 100, 400
# rich's own template loads a font from the network; a reader's monospace font will do.
FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def main() -> None:
    """Run the demo and write the picture."""
    program = Path(sys.executable).with_name("sandbox-agent")
    env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "COLORTERM": "truecolor"}
    with Terminal([str(program), "demo"], env=env, cwd=ROOT, columns=COLUMNS) as terminal:
        terminal.expect("Carry out this plan?", timeout_s=120)
        terminal.type("y\n")
        if code := terminal.wait(timeout_s=300):
            sys.exit(f"the demo ended with exit code {code}:\n{terminal.text}")
        shown = terminal.raw
    screen = pyte.Screen(COLUMNS, ROWS)
    pyte.Stream(screen).feed(shown)
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ make demo\n", "bold"), end="")
    for row in range(screen.cursor.y):
        console.print(line(screen.buffer[row], COLUMNS))
    picture = ROOT / "docs" / "demo.svg"
    svg = console.export_svg(title="sandbox-agent", theme=MONOKAI, code_format=FORMAT, unique_id="demo")
    picture.write_text(svg, encoding="utf-8")
    print(f"{picture.relative_to(ROOT)}: {picture.stat().st_size:,} bytes")


def line(cells: "dict[int, Char]", columns: int) -> Text:
    """Return one row of the emulator's screen as rich text."""
    text = Text()
    for column in range(columns):
        cell = cells[column]
        style = [colour(cell.fg)] if cell.fg != "default" else []
        style += [name for name in ("bold", "italics") if getattr(cell, name)]
        text.append(cell.data, " ".join(style).replace("italics", "italic"))
    text.rstrip()
    return text


def colour(name: str) -> str:
    """Return the emulator's name of a colour as rich calls it."""
    if len(name) == 6 and set(name) <= set("0123456789abcdef"):
        return f"#{name}"
    return name.replace("brown", "yellow")


if __name__ == "__main__":
    main()
