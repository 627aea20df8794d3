"""A kernel that dies: a cell that ran is told from one that did not."""

import asyncio

from agent.sandbox.e2b.box import E2BBox
from agent.tools.results import code_text

KERNEL = "$(pgrep -f '[i]pykernel_launcher' | head -1)"


async def test_kernel_that_dies_in_a_cell_is_told_from_one_that_died_before_it(box: E2BBox) -> None:
    """The service says `ContextRestarting` of both; only the cell that began may have taken effect."""
    await box.run_code("import os", timeout_s=60)
    ran = await box.run_code("open('/tmp/ran', 'w').close(); os._exit(1)", timeout_s=60)
    assert (ran.died, ran.restarted) == ("in the cell", True)
    assert "a part of it may have taken effect" in code_text(ran, 60, 10_000)
    assert await box.read_file("/tmp/ran") == b""
    assert (await box.run_code("1", timeout_s=60)).died == ""
    # Stopped, it cannot begin; then it dies.
    await box.run_command(f"kill -STOP {KERNEL}", timeout_s=30)
    waiting = asyncio.create_task(box.run_code("open('/tmp/not-run', 'w').close()", timeout_s=60))
    await asyncio.sleep(1)
    await box.run_command(f"kill -9 {KERNEL}", timeout_s=30)
    unrun = await waiting
    assert (unrun.died, unrun.restarted) == ("before the cell", True)
    assert "this cell did not run" in code_text(unrun, 60, 10_000)
    assert (await box.run_command("ls /tmp/not-run", timeout_s=30)).exit_code == 2
    assert (await box.run_code("6 * 7", timeout_s=60)).results[0].data["text/plain"] == "42"


async def test_cell_said_not_to_have_run_left_nothing(box: E2BBox) -> None:
    """The kernel dies about when a cell begins or ends: only one without effect is called unrun."""
    for number, delay_s in enumerate((0.0, 0.002, 0.01, 0.05)):
        effect = f"open('/tmp/effect-{number}', 'w').close()"
        code = f"{effect}; import os, threading; threading.Timer({delay_s}, os._exit, [1]).start()"
        died = (await box.run_code(code, timeout_s=60)).died
        there = (await box.run_command(f"test -e /tmp/effect-{number}", timeout_s=30)).exit_code == 0
        assert there == (died != "before the cell")
