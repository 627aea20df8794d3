"""Who may import whom, and what importing costs."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"


def imports(path: Path) -> set[str]:
    """Return the full names of the modules a file imports, wherever in it they stand; no relative ones."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def modules(package: str) -> list[Path]:
    """Return the package's files, without the data of the bundled project."""
    return [p for p in (SRC / package).rglob("*.py") if "broken_shop" not in p.parts]


def importers(of: str, within: str = "agent") -> set[str]:
    """Return the files that import a module or package, relative to src/."""
    return {
        str(path.relative_to(SRC))
        for path in modules(within)
        if any(name == of or name.startswith(f"{of}.") for name in imports(path))
    }


def test_only_one_package_imports_the_sandbox_sdk() -> None:
    """Another sandbox service means another package beside sandbox/e2b, and nothing else."""
    sdk = importers("e2b") | importers("e2b_code_interpreter")
    assert {str(Path(name).parent) for name in sdk} == {"agent/sandbox/e2b"}


def test_the_sdk_package_is_named_only_where_graphs_are_wired_and_handles_become_boxes() -> None:
    """The manager, the middleware and the tools see the Protocols alone."""
    outside = {n for n in importers("agent.sandbox.e2b") if not n.startswith("agent/sandbox/e2b/")}
    assert outside == {"agent/wiring.py", "agent/sandbox/live.py"}


def test_client_imports_nothing_else_of_the_package() -> None:
    """The driver can be copied into a program that has only langgraph-sdk."""
    for path in modules("agent/client"):
        others = {n for n in imports(path) if n.split(".")[0] == "agent" and not n.startswith("agent.client")}
        assert not others, f"{path.name} imports {others}"


def test_the_local_server_and_the_agent_do_not_know_each_other() -> None:
    """They speak E2B's protocol and nothing else."""
    assert not importers("e2b_local", "agent")
    assert not importers("agent", "e2b_local")


def test_only_settings_read_the_environment() -> None:
    """Every variable is validated and documented in one place."""
    readers = {
        str(path.relative_to(SRC))
        for path in modules("agent")
        # Programs that are sent into a sandbox read that sandbox's environment.
        if "inside" not in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in {"os.environ", "os.getenv"}
    }
    # The command line hands the whole environment on to the servers it starts, and looks at none of it.
    assert readers - {"agent/cli/processes.py"} == {"agent/settings.py"}


def test_one_module_runs_git_and_few_start_programs() -> None:
    """What a hostile folder can have started is looked for in one place."""
    # Programs that are sent into a sandbox start what they like there.
    outside = [path for path in modules("agent") if "inside" not in path.parts]
    names = {path: str(path.relative_to(SRC)) for path in outside}
    starters = {
        name for path, name in names.items() if imports(path) & {"subprocess", "pty", "multiprocessing"}
    }
    assert starters == {"agent/cli/git.py", "agent/cli/local_run.py", "agent/cli/processes.py"}
    calls = re.compile(
        r"(os\.(system|popen|exec\w+|posix_spawn\w*|spawn\w+|fork\w*))|.*create_subprocess_\w+"
    )
    callers, speakers = set(), set()
    for path, name in names.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and calls.fullmatch(ast.unparse(node)):
                callers.add(name)
            if isinstance(node, ast.Constant) and node.value == "git":
                speakers.add(name)
    assert callers == {"agent/cli/tether.py"}
    assert speakers == {"agent/cli/git.py", "agent/cli/doctor.py"}  # the latter heads a line with it


def test_only_one_module_makes_text_for_the_terminal() -> None:
    """Rich draws what `visible` built, which made it visible: nobody else takes rich's own classes for it."""
    drawn = {"rich.text", "rich.syntax", "rich.markup", "rich.markdown", "rich.json", "rich.pretty"}
    made = {str(path.relative_to(SRC)) for path in modules("agent/cli") if imports(path) & drawn}
    # The screen names rich's text as a type.
    assert made == {"agent/cli/visible.py", "agent/cli/screen.py"}


def test_only_screens_write_to_the_terminal() -> None:
    """A text that went another way would be obeyed: by `print`, a stream of its own, or a console itself."""
    ways = re.compile(
        r"\b(?:print|echo|secho|input|print_exc|click\.edit)\(|\bsys\.(?:stdout|stderr|__std)|\.file\b|Console\(|os\.write"
    )
    found: dict[str, set[str]] = {}
    for path in modules("agent/cli"):
        lines = [line.partition("#")[0] for line in path.read_text().splitlines()]
        if ours := {way[0] for line in lines for way in ways.finditer(line)}:
            found[path.name] = ours
    assert found == {
        "screen.py": {"print(", "input(", ".file", "Console("},
        "visible.py": {"Console("},  # the console that makes all visible
        "output.py": {"sys.stdout", "sys.stderr", "sys.__std", "echo("},  # makes all visible on it
        "entry.py": {"Console(", "echo(", "print_exc("},  # on that
        "threads.py": {"echo("},  # on that
        "main.py": {"echo("},  # our version
        "processes.py": {"sys.stdout"},  # relays a server's log, made visible
        "jsonl.py": {"sys.stdout"},  # in ASCII
        "pictures.py": {"os.write"},  # asks the terminal what it is
        "editing.py": {"click.edit("},  # hands YAML to an editor, in which what hides is escaped
    }


@pytest.mark.parametrize("module", ["agent.graphs.code_agent", "agent.graphs.plan_execute"])
def test_importing_and_drawing_a_graph_needs_no_key_and_no_network(module: str) -> None:
    """A server starts, shows schemas and draws graphs before anything is configured."""
    program = f"""
import socket
def refuse(*args, **kwargs):
    raise AssertionError("a connection was tried")
socket.socket.connect = socket.create_connection = refuse
from {module} import graph
assert graph.get_graph().nodes
graph.get_input_jsonschema(), graph.get_output_jsonschema(), graph.get_context_jsonschema()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env={}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
