"""Installed without extras: what commands need is there, or they say which extra brings it."""

import ast
import os
import subprocess
import sys
from importlib.metadata import distribution, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from agent.cli.servers import NEEDED

SRC = Path(__file__).parents[2] / "src"
PACKAGE = "langgraph-e2b-agent"
NOWHERE = ("--server", "http://127.0.0.1:1")
THREAD = "00000000-0000-4000-8000-000000000000"
EXTRA = "The extra `local` is not installed, which serve and demo need"


def brought(by: str = PACKAGE, extra: str = "") -> set[str]:
    """Return the distributions that an installation brings, itself included."""
    found: set[str] = set()
    wanted = [(canonicalize_name(by), extra)]
    seen: set[tuple[str, str]] = set()
    while wanted:
        at = wanted.pop()
        if at in seen:
            continue
        seen.add(at)
        found.add(at[0])
        for line in requires(at[0]) or ():
            need = Requirement(line)
            if need.marker is None or need.marker.evaluate({"extra": at[1]}):
                wanted += [(canonicalize_name(need.name), each) for each in ("", *need.extras)]
    return found


def modules() -> list[Path]:
    """Return the files of the agent that run without a LangGraph server around them."""
    parts = ("broken_shop", "inside", "server")
    files = [path for path in (SRC / "agent").rglob("*.py") if not {*parts} & {*path.parts}]
    return [path for path in files if path.name != "routes.py"]


def imported(path: Path) -> set[str]:
    """Return the first names of the modules that a file imports, at its top or later."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return {name.split(".")[0] for name in names} - sys.stdlib_module_names - {"agent"}


def test_what_the_agent_imports_comes_with_the_package() -> None:
    """None of it is there by an extra alone, or by chance; but for what draws pictures, if it is there."""
    base, known = brought(), packages_distributions()
    missing = {
        f"{name} in {path.relative_to(SRC)}"
        for path in modules()
        for name in imported(path) - {"PIL"}
        if not base & {canonicalize_name(each) for each in known[name]}
    }
    assert not missing


def test_what_the_servers_need_comes_with_the_extra() -> None:
    """Whoever follows the advice has what was missing."""
    assert {*NEEDED} <= brought(extra="local")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which Python finds this package and what it brings, and no extra."""
    packages = tmp_path_factory.mktemp("packages")
    for name in brought():
        files = distribution(name).files or []
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            if not (packages / top).exists():
                (packages / top).symlink_to(Path(str(distribution(name).locate_file(top))).resolve())
    path = os.pathsep.join([str(packages), str(SRC)])
    home = str(tmp_path_factory.mktemp("home"))
    return {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.environ["PATH"], "HOME": home}


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        (["demo"], 3, EXTRA),
        (["serve"], 3, EXTRA),
        (["doctor", *NOWHERE], 0, "missing: langgraph-cli"),
        (["repair", ".", *NOWHERE], 3, "No answer"),
        (["chat", "hello", *NOWHERE], 3, "No answer"),
        (["resume", THREAD, *NOWHERE], 3, "No answer"),
        (["threads", *NOWHERE], 3, "No answer"),
        (["show", THREAD, *NOWHERE], 3, "No answer"),
        (["cancel", THREAD, *NOWHERE], 3, "No answer"),
        (["sandboxes", "list", *NOWHERE], 2, "DEPLOYMENT is not set"),
        (["sandboxes", "sweep", *NOWHERE], 2, "DEPLOYMENT is not set"),
        (["--version"], 0, "sandbox-agent "),
    ],
)
def test_command_without_extras_works_or_names_the_extra(
    bare: dict[str, str], tmp_path: Path, command: list[str], code: int, text: str
) -> None:
    """In one line, and without a traceback."""
    (tmp_path / "langgraph.json").write_text("{}")
    (tmp_path / ".env").write_text("LOG_LEVEL=INFO\n")  # it is read, too
    program = "from agent.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-S", "-c", program, "--project", str(tmp_path), *command],
        env=bare,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    assert "Traceback" not in said
    assert (done.returncode, text in " ".join(said.split())) == (code, True), said
    if text == EXTRA:
        assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "text"), [("serve", "serve needs the extra `local`"), ("list", "set E2B_API_URL")]
)
def test_local_server_without_extras_names_the_extra(bare: dict[str, str], command: str, text: str) -> None:
    """Asking a server that runs elsewhere needs none."""
    program = "from e2b_local.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-S", "-c", program, command], env=bare, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert text in done.stderr
