"""The page on tools and the tools themselves say the same."""

import re
from pathlib import Path

from langchain_core.tools import BaseTool

from agent.tools import background_tools, file_tools, python_tool, shell_tool

PAGE = (Path(__file__).parents[2] / "docs" / "tools.md").read_text()


def signature(tool: BaseTool) -> str:
    """Return a tool as the page writes it: a question mark behind arguments that may be left out."""
    schema = tool.tool_call_schema
    assert isinstance(schema, type)
    shape = schema.model_json_schema()
    required = set(shape.get("required", ()))
    names = [name if name in required else f"{name}?" for name in shape["properties"]]
    return f"{tool.name}({', '.join(sorted(names, key=lambda name: name.endswith('?')))})"


def test_the_page_lists_every_tool_with_its_arguments() -> None:
    """What a model is offered is what the page promises."""
    tools = [python_tool(), shell_tool(), *background_tools(), *file_tools()]
    listed = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)
    assert sorted(listed) == sorted(map(signature, tools))
