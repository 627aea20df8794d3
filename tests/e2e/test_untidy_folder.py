"""A folder as people have them is repaired from the command line, and nothing else in it is touched."""

import subprocess
from pathlib import Path

import pytest

from e2e.test_client_commands import commit, env, pricing, run, shop, thread_of

__all__ = ["env", "shop"]  # fixtures

UNTIDY = {
    "latin.py": b"# -*- coding: latin-1 -*-\nname = '\xe9'\n",
    "utf16.txt": "é\r\n".encode("utf-16"),
    "caf\udce9.txt": b"\xff\0",
    "venv/__init__.py": b"import latin\nassert latin.name == '\\xe9'\n",
    "node_modules/own.js": b"1\n",
    "build/tracked.txt": b"\r\n",
    ".gitignore": b"*.log\nbuild/\n",
    "tests/test_venv.py": b"import venv\n\n\ndef test_own() -> None:\n    assert 'latin' in dir(venv)\n",
}


@pytest.mark.parametrize("archived", [[], ["--archive"]])
def test_untidy_folder_is_repaired_and_nothing_else_is_touched(
    env: dict[str, str], shop: Path, archived: list[str]
) -> None:
    """Packages named like dependencies, other encodings, links, files that are ignored or tracked."""
    for name, data in UNTIDY.items():
        (shop / name).parent.mkdir(exist_ok=True)
        (shop / name).write_bytes(data)
    (shop / "link.py").symlink_to("latin.py")
    subprocess.run(["git", "add", "-Af"], cwd=shop, check=True)
    commit(shop)
    (shop / "debug.log").write_text("mine")
    done = run(env, "repair", str(shop), "--yes", "--apply", *archived)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "as an archive" in done.stdout
    assert "✓ 15 passed" in done.stdout
    assert "Changed shop/basket.py, shop/pricing.py." in done.stdout
    assert {name: (shop / name).read_bytes() for name in UNTIDY} == UNTIDY
    assert (shop / "debug.log").read_text() == "mine"
    assert "quantity >= pieces" in pricing(shop)
    status = subprocess.check_output(["git", "status", "--porcelain"], cwd=shop, text=True)
    assert status.split() == ["M", "shop/basket.py", "M", "shop/pricing.py"]
    subprocess.run(["git", "checkout", "-q", "."], cwd=shop, check=True)
    diff = run(env, "show", thread_of(done.stdout), "--diff").stdout
    subprocess.run(["git", "apply", "--check", "-"], cwd=shop, input=diff.encode(), check=True)
