"""What code displays beside text: named for what it is, kept as that, and linked."""

import base64
import json

import pytest
from langgraph.store.memory import InMemoryStore

from agent.artifacts.media import medium
from agent.artifacts.shelf import Shelf
from agent.artifacts.shelving import Shelving, links
from agent.sandbox.output import Excerpt
from agent.sandbox.provider import CodeResult, RichResult, Spooled
from agent.tools.results import code_artifact, code_text

FIGURE = json.dumps({"data": [{"x": [1], "y": [2]}], "layout": {}})
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


@pytest.mark.parametrize(
    ("mime", "data", "title", "ending"),
    [
        ("application/vnd.plotly.v1+json", FIGURE, "plotly (JSON)", "json"),
        ("application/vnd.vegalite.v5+json", FIGURE, "vegalite (JSON)", "json"),
        ("application/vnd.vegalite.v6.json", FIGURE, "vegalite (JSON)", "json"),
        ("application/vnd.bokehjs_exec.v0+json", FIGURE, "bokehjs_exec (JSON)", "json"),
        ("application/vnd.jupyter.widget-view+json", FIGURE, "jupyter (JSON)", "json"),
        ("application/geo+json", FIGURE, "geo (JSON)", "json"),
        ("application/json", json.dumps(["x" * 3_000]), "JSON", "json"),
        ("text/html", "<div>" * 900, "HTML", "html"),
        ("application/javascript", "x()" * 900, "JavaScript", "js"),
        ("text/latex", "$x$" * 900, "TEX", "tex"),
        ("text/markdown", "# x\n" * 900, "MD", "md"),
        ("text/x-unheard-of", "x" * 3_000, "TXT", "txt"),
        ("application/atom+xml", "<x/>" * 900, "XML", "xml"),
        ("image/svg+xml", "<svg/>", "image 1", "svg"),
        ("image/bmp", PNG, "image 1", "bmp"),
        ("application/pdf", PNG, "PDF", "pdf"),
        ("application/x-unheard-of", "x" * 3_000, "BIN", "bin"),
    ],
)
async def test_a_result_is_kept_and_linked_as_what_it_is(
    mime: str, data: str, title: str, ending: str
) -> None:
    """Its link says what it leads to, and the file ends as such files do."""
    entries = await Shelving(Shelf(InMemoryStore(), "one"), str).entries(
        [{mime: data, "text/plain": "Figure"}]
    )
    assert [(one.get("title"), one["name"].rpartition(".")[2]) for one in entries] == [(title, ending)]
    said = links(entries, lambda name: f"http://server/{name}")
    assert said.removeprefix("!").startswith(f"[{title}](http://server/")


@pytest.mark.parametrize(
    "mime", ["application/vnd.plotly.v1+json", "application/json", "application/geo+json"]
)
def test_json_opens_in_a_browser_under_a_type_it_knows(mime: str) -> None:
    """In place, since nothing in it runs."""
    kind = medium(mime)
    assert (kind.inline, kind.served or mime) == (True, "application/json")


@pytest.mark.parametrize(
    "mime", ["text/html", "image/svg+xml", "text/x-odd", "a/b+xml", "text/html\r\nX: y+json"]
)
def test_what_could_hold_scripts_is_never_opened_in_place(mime: str) -> None:
    """Whatever a kernel calls it."""
    assert not medium(mime).inline


def test_a_model_is_not_read_a_page_of_a_chart() -> None:
    """It hears what there is; a short table is read to it."""
    forms = {"application/vnd.plotly.v1+json": FIGURE, "text/html": "<script>" * 1_000}
    text = code_text(CodeResult("", "", results=[RichResult(forms, is_main=True)]), 5, 4_000)
    assert text == "<result>\n[application/vnd.plotly.v1+json, 1 KB] [text/html, 8 KB]\n</result>"
    table = RichResult({"text/html": "<table></table>"}, is_main=True)
    assert "<table>" in code_text(CodeResult("", "", results=[table]), 5, 4_000)


def test_a_form_too_long_to_pass_on_is_named_with_its_file_and_no_artifact() -> None:
    """A page of 8 MB is not replaced by a note that looks like one."""
    lost = RichResult({"text/plain": "Map", "text/html": Excerpt(8_000_000)}, is_main=True)
    file = Spooled("/tmp/agent-output/1.result-1.html", 8_000_000, 8_000_000, 8_000_000)
    result = CodeResult("", "", results=[lost], spooled={"result-1.html": file})
    assert code_artifact(result) == {"results": [{"text/plain": "Map"}]}
    assert code_text(result, 5, 4_000) == (
        "<result>\nMap\n[text/html, 8000000 bytes: too long to pass on; the whole in "
        "/tmp/agent-output/1.result-1.html]\n</result>"
    )
