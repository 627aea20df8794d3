"""Run the test suites of E2B's JavaScript SDKs against e2b-local.

    python tests/suites/run_js.py --e2b CHECKOUT --code-interpreter CHECKOUT [-- vitest arguments]

The checkouts are of E2B's public repositories; nothing of them is kept here, and their tests run against the
newest `e2b` and `@e2b/code-interpreter` of the npm registry. Tests that cannot apply to a server on one
machine, or test no server at all, are listed with their reasons in deselected_js.txt. It needs Node and npm,
and in the Python that runs it the same kernels as run.py.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

_HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent)]

from run import missing_kernels  # noqa: E402
from suite_selection import patterns  # noqa: E402 - it lies beside, not in a package

from support.e2b_process import start_e2b_local  # noqa: E402

_PACKAGES = ("e2b", "@e2b/code-interpreter", "vitest@4", "dotenv@16")
_LIST = _HERE / "deselected_js.txt"


def main() -> int:
    """Run the suites whose checkouts are given; return the exit code of the first that fails, else 0."""
    parser = argparse.ArgumentParser(description="Run E2B's JavaScript SDK test suites against e2b-local.")
    parser.add_argument("--e2b", type=pathlib.Path, help="checkout of E2B's main repository")
    parser.add_argument("--code-interpreter", type=pathlib.Path, help="checkout of E2B's code interpreter")
    parser.add_argument("--packages", type=pathlib.Path, help="folder for npm's packages, to keep them")
    parser.add_argument("vitest", nargs="*", help="further arguments for vitest, after --")
    arguments = parser.parse_args()
    suites: list[tuple[str, pathlib.Path, list[str]]] = []
    if arguments.e2b:
        places = ["tests/sandbox/**/*.test.ts", "tests/api/**/*.test.ts"]
        suites.append(("e2b", arguments.e2b / "packages" / "js-sdk", places))
    if arguments.code_interpreter:
        suites.append(("@e2b/code-interpreter", arguments.code_interpreter / "js", ["tests/**/*.test.ts"]))
    if not suites:
        parser.error("give --e2b, --code-interpreter or both")
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.packages or pathlib.Path(temporary)
        _install(folder)
        os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        server = start_e2b_local()
        code = 0
        try:
            for package, source, places in suites:
                code = _run(folder, package, source, places, server.env, arguments.vitest) or code
        finally:
            server.stop()
    return code


def _install(folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "node_modules" / "vitest").is_dir():
        (folder / "package.json").write_text('{"private": true, "type": "module"}')
        command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *_PACKAGES]
        subprocess.run(command, cwd=folder, check=True)
    for package in _PACKAGES[:2]:
        about = json.loads((folder / "node_modules" / package / "package.json").read_text())
        print(package, about["version"], flush=True)  # noqa: T201 - so that a report says what was tried


def _run(
    folder: pathlib.Path,
    package: str,
    source: pathlib.Path,
    places: list[str],
    variables: dict[str, str],
    more: list[str],
) -> int:
    # Beside the packages, where Node looks for them; a checkout is left as it is.
    copy = folder / source.name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(source / "tests", copy / "tests")
    shutil.copy(_HERE / "vitest.config.mjs", copy)
    files, names = _deselected(package)
    environment = {
        **os.environ,
        **variables,
        "SUITE_PACKAGE": package,
        "SUITE_TESTS": json.dumps(places),
        "SUITE_EXCLUDED": json.dumps(files),
        "SUITE_NAMES": f"^(?!.*(?:{'|'.join(names)})$)" if names else "",
    }
    command = ["npx", "vitest", "run", *more]
    return subprocess.run(command, cwd=copy, env=environment, check=False).returncode


def _deselected(package: str) -> tuple[list[str], list[str]]:
    """Return the patterns of files that are left out, and of tests by the end of their full names.

    A line names its package, a file and, after ` > `, a test.
    """
    files, names = [], []
    listed = patterns(set(missing_kernels()), _LIST)
    if unexplained := [line for line, reason in listed.items() if not reason]:
        raise SystemExit(f"{_LIST.name}: no reason stands above {unexplained[0]!r}")
    for line in listed:
        owner, _, rest = line.partition(": ")
        if owner == package:
            file, _, name = rest.partition(" > ")
            (names if name else files).append(re.escape(name) if name else file)
    return files, names


if __name__ == "__main__":
    sys.exit(main())
