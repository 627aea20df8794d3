"""What a cell leaves running in the background does not hold its result back."""

import asyncio

import pytest

from agent.sandbox.e2b.box import E2BBox, OwnedSandbox

LEFT = [
    "%%bash\nsleep 15 &\necho now",
    "%%bash\n(sleep 15; echo never) & echo now; disown",
    "%%sh\nnohup sleep 15 2>&1 & echo now",
    "%%script bash --no-raise-error\nsleep 15 & echo now",
    "!sleep 15 & echo now",
    "!echo now; sleep 15 &",
    "x = !sleep 15 & echo now\nprint(x.n)",
    "print(get_ipython().getoutput('sleep 15 & echo now', split=False).strip())",
    "%sx sleep 15 & echo now\nprint('now')",
    "import os; _ = os.system('sleep 15 & echo now')",
    "import subprocess; _ = subprocess.Popen('echo now; exec sleep 15', shell=True); print('now')",
    "%%bash --out x\nsleep 15 & echo now\n",
    "!yes > /dev/null & echo now",
    "!setsid bash -c 'sleep 15' & echo now",
]


@pytest.mark.parametrize("code", LEFT)
async def test_a_cell_does_not_wait_for_what_it_left_running(
    box: E2BBox, handle: OwnedSandbox, code: str
) -> None:
    """Its result comes long before the program ends, with what was printed by then."""
    try:
        result = await box.run_code(code, timeout_s=60)
        assert result.error is None, result.error
        assert result.duration_s < 10
        if "--out" in code:
            result = await box.run_code("print(x)", timeout_s=60)
        assert "now\n" in result.stdout + "".join(rich.data["text/plain"] for rich in result.results)
        assert not result.timed_out
    finally:
        await handle.commands.run("pkill sleep; pkill yes; true")


async def test_what_a_cell_left_running_prints_to_the_file_that_its_result_names(
    box: E2BBox, handle: OwnedSandbox
) -> None:
    """It neither waits for a reader nor dies of a closed pipe."""
    code = "%%bash\n(for n in 1 2 3; do sleep 0.5; echo later $n; echo wrong $n >&2; done) &\necho now"
    result = await box.run_code(code, timeout_s=60)
    assert (result.stdout, result.stderr) == ("now\n", "")
    assert all(result.spooled[name].goes_on for name in ("stdout", "stderr"))
    async with asyncio.timeout(20):
        while "later 3" not in (text := await handle.files.read(result.spooled["stdout"].path)):
            pass
        assert text == "now\nlater 1\nlater 2\nlater 3\n"
        while "wrong 3" not in await handle.files.read(result.spooled["stderr"].path):
            pass
    after = await box.run_code("print('own')", timeout_s=60)
    assert (after.stdout, after.spooled) == ("own\n", {})


@pytest.mark.parametrize(
    ("code", "printed", "error"),
    [
        ("%%bash\nread x\nrest\necho $x", "rest\n", None),
        ("%%bash\necho out; echo err >&2; exit 3", "out\n", "CalledProcessError"),
        ("%%bash --no-raise-error\nexit 3", "", None),
        ("%%bash --err e\necho Zoë >&2\n", "", None),
        ("%%python3\nprint(5)", "5\n", None),
        ("%%script no-such-program\nx", "Couldn't find program: 'no-such-program'\n", None),
        ("a = 'b'\n!echo $a {a * 2}", "b bb\n", None),
        ("a = 'b'\nx = !echo $a; echo c\nprint(x)", "['b', 'c']\n", None),
        ("!exit 3\nprint(_exit_code)", "3\n", None),
        ("%%bash\nfor n in $(seq 3); do printf '\\xe2\\x82'; sleep 0.1; printf '\\xac'; done", "€€€", None),
        ("%%bash --bg --out pipe\necho bg", "", None),
        ("%%capture got\n!echo caught", "", None),
        ("print(got.stdout)", "caught\n\n", None),
    ],
)
async def test_programs_of_the_shell_work_as_in_a_notebook(
    box: E2BBox, code: str, printed: str, error: str | None
) -> None:
    """Options, variables, exit codes and what they read are IPython's own."""
    if code.startswith("print(got"):
        await box.run_code("%%capture got\n!echo caught", timeout_s=60)
    result = await box.run_code(code, timeout_s=60)
    assert result.stdout == printed
    assert (result.error.name if result.error else None) == error
    if "--err e" in code:
        assert (await box.run_code("print(e)", timeout_s=60)).stdout == "Zoë\n\n"
