"""pytest in a sandbox: what it loads is what the template offers, not what this Python has besides."""

from __future__ import annotations

import importlib.metadata
import json

import pytest
from e2b_code_interpreter import AsyncSandbox, Sandbox

from e2b_local.pytest_plugins import not_offered
from support.e2b_process import MakeSandbox, start_e2b_local

_LOADED = (
    "import json\n"
    "def test_x(pytestconfig):\n"
    "    manager = pytestconfig.pluginmanager\n"
    "    print('loaded', json.dumps([dist.project_name for _, dist in manager.list_plugin_distinfo()]))\n"
)


def _names(shown: str) -> set[str]:
    line = next(each for each in shown.splitlines() if "loaded [" in each)
    return {str(name) for name in json.loads(line.partition("loaded ")[2].rstrip("."))}


def _ours() -> set[str]:
    """The packages with a plugin that are here because this project's own tests, or langchain, want them."""
    wanted = {"hypothesis", "pytest-asyncio", "pytest-socket", "pytest-xdist", "langsmith"}
    there = {each.dist.name for each in importlib.metadata.entry_points(group="pytest11") if each.dist}
    assert wanted <= there
    return wanted


@pytest.mark.usefixtures("isolated")
async def test_pytest_loads_no_plugin_of_the_servers_own_tools(make_sandbox: MakeSandbox) -> None:
    """Neither langchain's nor those of this project's tests; none is named in a variable either."""
    sandbox = await make_sandbox()
    await sandbox.files.write("test_x.py", _LOADED)
    shown = (await sandbox.commands.run("python -m pytest -s test_x.py; env | grep PYTEST || true")).stdout
    assert not _names(shown) & _ours()
    assert "PYTEST_" not in shown


@pytest.mark.usefixtures("isolated")
async def test_a_plugin_that_is_not_loaded_can_be_named(shared: AsyncSandbox) -> None:
    """The packages are there, and whoever wants one says so; the rest of what a package declares stays."""
    await shared.files.write(
        "test_async.py", "import pytest\n@pytest.mark.asyncio\nasync def test_it(): pass\n"
    )
    envs = {"PYTEST_PLUGINS": "pytest_asyncio.plugin"}
    assert "1 passed" in (await shared.commands.run("pytest test_async.py", envs=envs)).stdout
    assert (await shared.commands.run("hypothesis --version")).exit_code == 0
    declared = "import importlib.metadata as m; print(m.distribution('hypothesis').entry_points.names)"
    assert "hypothesis" in (await shared.commands.run(f'python -c "{declared}"')).stdout


@pytest.mark.usefixtures("isolated")
async def test_a_plugin_of_a_sandboxs_own_is_loaded(shared: AsyncSandbox) -> None:
    """One that is put into the sandbox, under a name that is kept out of the template, loads as anywhere."""
    info = "plugins/pytest_asyncio-9.dist-info"
    await shared.files.write("plugins/own_asyncio.py", "")
    await shared.files.write(f"{info}/METADATA", "Metadata-Version: 2.1\nName: pytest-asyncio\nVersion: 9\n")
    await shared.files.write(f"{info}/entry_points.txt", "[pytest11]\nasyncio = own_asyncio\n")
    await shared.files.write("test_x.py", _LOADED)
    shown = await shared.commands.run("pytest -s test_x.py", envs={"PYTHONPATH": "/home/user/plugins"})
    assert "pytest-asyncio" in _names(shown.stdout)


def test_without_isolation_pytest_is_told_to_load_none_of_them() -> None:
    """There the host's packages cannot be hidden."""
    server = start_e2b_local("--pool", "0", "--no-isolation")
    try:
        with Sandbox.create(**server.options) as sandbox:
            sandbox.files.write("test_x.py", _LOADED)
            assert not _names(sandbox.commands.run("python -m pytest -s test_x.py").stdout) & _ours()
    finally:
        assert server.stop() == 0


def test_what_another_package_brings_is_offered() -> None:
    """Who installs the server without its development tools, and a plugin beside it, gets that plugin."""
    assert not_offered("no-such-package") == []
    kept_out = {name for plugins in not_offered() for name in plugins.names}
    assert {"langsmith_plugin", "asyncio"} <= kept_out
    assert not kept_out & {"anyio", "timeout"}
