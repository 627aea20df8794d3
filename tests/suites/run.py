"""Run E2B's own SDK test suites against e2b-local.

    python tests/suites/run.py --e2b CHECKOUT --code-interpreter CHECKOUT [-- pytest arguments]

The checkouts are of E2B's public repositories; nothing of them is kept here. Tests that cannot apply to a
server on one machine are listed with their reasons in deselected.txt. The Python that runs this needs e2b,
e2b-code-interpreter, pytest, pytest-asyncio, pytest-timeout, and for the kernels orjson, e2b_charts, pillow,
sympy and bash_kernel; the tests of JavaScript, R and Java run where their kernels are installed. The suites
are run by the `pytest` program, so that they import the installed SDK and not the checkout's own.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys

_HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE.parent))

from e2b_local.inbox.languages import kernel_kind  # noqa: E402
from e2b_local.inbox.wire import OpError  # noqa: E402
from support.e2b_process import start_e2b_local  # noqa: E402 - it lies beside, not in a package

_SDK = (
    "tests/sync/sandbox_sync",
    "tests/sync/api_sync",
    "tests/async/sandbox_async",
    "tests/async/api_async",
)


def main() -> int:
    """Run the suites whose checkouts are given; return the exit code of the first that fails, else 0."""
    parser = argparse.ArgumentParser(description="Run E2B's SDK test suites against e2b-local.")
    parser.add_argument("--e2b", type=pathlib.Path, help="checkout of E2B's main repository")
    parser.add_argument("--code-interpreter", type=pathlib.Path, help="checkout of E2B's code interpreter")
    parser.add_argument("pytest", nargs="*", help="further arguments for pytest, after --")
    arguments = parser.parse_args()
    if not arguments.e2b and not arguments.code_interpreter:
        parser.error("give --e2b, --code-interpreter or both")
    suites: list[tuple[pathlib.Path, list[str]]] = []
    if arguments.e2b:
        suites.append((arguments.e2b / "packages" / "python-sdk", list(_SDK)))
    if arguments.code_interpreter:
        suites.append((arguments.code_interpreter / "python", ["tests"]))
    # The server's template is the Python that runs this, with its programs first on the path.
    os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    server = start_e2b_local()
    code = 0
    try:
        for folder, tests in suites:
            code = code or _run(folder, tests, server.env, arguments.pytest)
    finally:
        server.stop()
    return code


def _run(folder: pathlib.Path, tests: list[str], variables: dict[str, str], more: list[str]) -> int:
    command = [str(pathlib.Path(sys.executable).parent / "pytest"), *tests, "-q", "-p", "suite_selection"]
    # The checkout's own options want plugins for parallel runs.
    command += ["-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib", "--timeout=90", *more]
    environment = {
        **os.environ,
        **variables,
        "PYTHONPATH": str(_HERE),
        "SUITE_MISSING_KERNELS": " ".join(missing_kernels()),
    }
    return subprocess.run(command, cwd=folder, env=environment, check=False).returncode


def missing_kernels() -> list[str]:
    """Return the languages of the suites that the template has no kernel for."""
    return [language for language in ("javascript", "r", "java") if _missing(language)]


def _missing(language: str) -> bool:
    try:
        kernel_kind(language)
    except OpError:
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
