"""Nothing on the server reads without a bound what a sandbox or a client sends."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

AGENT = Path(__file__).parents[2] / "src" / "agent"

ELSEWHERE = ("cli", "client", "scripted", "inside")
"""Programs on a user's own machine, and those that run in a sandbox."""

ALLOWED = {
    "bounded.py": {"json.loads"},  # behind its own count
    "repair/archive.py": {"tarfile.open", "zipfile.ZipFile", "gzip.GzipFile", "bz2.BZ2File"},
    "repair/junit.py": {"ElementTree.XMLParser"},  # fed a document that was measured, and builds no tree
    "sandbox/e2b/box.py": {"files.read"},  # as a stream, counted
    "kept.py": {"read_text"},  # a file of the server's own
    "env_example.py": {"read_text"},
    "sandbox/e2b/inside/__init__.py": {"read_text"},
}

PARSERS = {
    "json.loads",
    "json.load",
    "tarfile.open",
    "zipfile.ZipFile",
    "gzip.open",
    "gzip.decompress",
    "gzip.GzipFile",
    "bz2.open",
    "bz2.decompress",
    "bz2.BZ2File",
    "lzma.open",
    "lzma.decompress",
    "lzma.LZMAFile",
    "zlib.decompress",
    "ElementTree.fromstring",
    "ElementTree.parse",
    "ElementTree.XMLParser",
    "pickle.loads",
    "yaml.safe_load",
    "yaml.load",
}
WHOLE = {"aread", "body", "form", "read_bytes", "read_text", "readlines", "aiter_lines"}
"""Methods that read to the end, whatever they are called on."""


def unbounded(source: str) -> Iterator[str]:
    """Yield what reads without a bound in a program: the name of each call."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name, of = node.func.attr, ast.unparse(node.func.value)
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
        called = f"{of.rpartition('.')[2]}.{name}"
        if called in PARSERS or called == "files.read":
            yield called
        elif name in WHOLE or (name == "json" and "request" in of):
            yield name
        elif name == "read" and not node.args:
            yield "read"
        elif called == "commands.run" and given.get("retain_output") != "False":
            yield called
        elif name == "run_code" and of.endswith("sandbox") and node.args and given.get("timeout") is None:
            yield name
        elif name == "join" and node.args and isinstance(node.func.value, ast.Constant):
            argument = node.args[0]
            if isinstance(argument, ast.ListComp) and any(each.is_async for each in argument.generators):
                yield "join"


@pytest.mark.parametrize(
    "source",
    [
        "file.read()",
        "await sandbox.files.read(path, format='bytes')",
        "await request.body()",
        "await request.json()",
        "await response.aread()",
        "tarfile.open(fileobj=f)",
        "zipfile.ZipFile(f)",
        "gzip.decompress(data)",
        "json.loads(text)",
        "ElementTree.fromstring(data)",
        "await self._sandbox.commands.run(script)",
        "b''.join([chunk async for chunk in stream])",
        "path.read_bytes()",
    ],
)
def test_unbounded_reads_are_known(source: str) -> None:
    """What the next test looks for."""
    program = f"async def f():\n    {source}"
    assert list(unbounded(program))


def test_no_module_of_the_server_reads_without_a_bound() -> None:
    """Each that must is named, with the call that it may make."""
    found = {}
    for path in sorted(AGENT.rglob("*.py")):
        name = path.relative_to(AGENT)
        if set(name.parts[:-1]) & set(ELSEWHERE) and str(name) not in ALLOWED:
            continue
        if calls := set(unbounded(path.read_text())) - ALLOWED.get(str(name), set()):
            found[str(name)] = calls
    assert found == {}
