"""A project that came as an archive: what the sandbox alone holds is checked before it is used."""

import hashlib
import io
import tarfile
import uuid
import zipfile
from pathlib import Path
from typing import Any

import pytest
from e2b_code_interpreter import AsyncSandbox

from agent.errors import InputError, SandboxError
from agent.repair.workspace import Workspace
from agent.sandbox.live import box
from agent.sandbox.owners import Owner
from agent.settings import Settings
from agent.wiring import sandbox_manager
from server.repair.conftest import MakeRepair
from support.alive import alive
from support.e2b_process import E2BLocal
from support.repairs import ADD, APPROVE, CALC, DOUBLE, TEST_COMMAND, Repair, git_applied, plan

MANY = CALC | {"tests/data.txt": "data\n", "a b/ü.txt": "ü\n"}


def tar() -> bytes:
    """Return the project with a folder around it, an executable, a link and a binary file."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as made:
        for path, text in {**MANY, "run": "#!/bin/sh\n"}.items():
            info = tarfile.TarInfo(f"calc/{path}")
            info.size, info.mode = len(text.encode()), 0o755 if path == "run" else 0o600
            made.addfile(info, io.BytesIO(text.encode()))
        image = tarfile.TarInfo("calc/image.png")
        image.size = 4
        made.addfile(image, io.BytesIO(b"\x89PN\0"))
        link = tarfile.TarInfo("calc/link")
        link.type, link.linkname = tarfile.SYMTYPE, "calc.sh"
        made.addfile(link)
    return packed.getvalue()


def zipped() -> bytes:
    """Return the project without a folder around it."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made:
        for path, text in MANY.items():
            made.writestr(path, text)
    return packed.getvalue()


async def uploaded(settings: Settings, repair: Repair, data: bytes) -> dict[str, Any]:
    """Put an archive into the thread's sandbox as the route does, and return what it writes into state."""
    manager = sandbox_manager(settings)
    run = str(uuid.uuid4())
    owner = Owner(graph="plan_execute", thread=repair.thread_id, run=run, task=run)
    policy = manager.policy.model_copy(update={"keep": "thread"})
    acquired = await manager.acquire(owner, "", policy)
    await Workspace(box(acquired.handle)).put_archive(data)
    await manager.release(owner, acquired.sandbox_id, policy)
    archive = {"sha256": hashlib.sha256(data).hexdigest(), "size_bytes": len(data)}
    values = {"project": {}, "archive": archive, "sandbox_id": acquired.sandbox_id}
    await repair.graph.aupdate_state(repair.config, values, as_node="summarize")
    return values


async def in_the_sandbox(sandboxes: E2BLocal, repair: Repair, command: str) -> str:
    """Run a command in the thread's sandbox from outside."""
    (one,) = await alive(sandboxes, thread=repair.thread_id)
    sandbox = await AsyncSandbox.connect(one.sandbox_id, timeout=60, **sandboxes.options)
    return (await sandbox.commands.run(command)).stdout


@pytest.mark.parametrize("pack", [tar, zipped])
async def test_archive_is_repaired_in_its_own_sandbox(
    make_repair: MakeRepair, settings: Settings, sandboxes: E2BLocal, tmp_path: Path, pack: Any
) -> None:
    """Whatever it is packed with: adopted, repaired, tests put back from the kept copy, a patch that fits."""
    cheat = ("calc.sh", "echo exit 0 > tests/run.sh; rm tests/data.txt; chmod -x run || true")
    repair = make_repair(plan(ADD, cheat, DOUBLE))
    data = pack()
    values = await uploaded(settings, repair, data)
    state = await repair.run({"test_command": TEST_COMMAND})
    assert "a b/ü.txt" in repair.mind.asked[0]
    assert (state["sandbox_id"], state["project"]) == (values["sandbox_id"], {})
    state = await repair.answer(APPROVE)
    assert (state["status"], state["left_out"]) == ("passed", {})
    assert state["changed_tests"] == ["tests/data.txt", "tests/run.sh"]
    assert git_applied(MANY | {"run": "#!/bin/sh\n"}, state["diff"], tmp_path)["calc.sh"].count("+") == 2
    assert ("old mode 100755\nnew mode 100644" in state["diff"]) is (pack is tar)
    assert await alive(sandboxes, thread=repair.thread_id) == []


async def test_archive_lost_with_its_sandbox_is_said(
    make_repair: MakeRepair, settings: Settings, sandboxes: E2BLocal
) -> None:
    """Nothing can be made again: an error that says what is left, and no sandbox made for nothing."""
    repair = make_repair(plan(ADD), plan(DOUBLE))
    values = await uploaded(settings, repair, tar())
    await repair.run({"test_command": TEST_COMMAND})
    await repair.answer(APPROVE)
    await AsyncSandbox.kill(values["sandbox_id"], **sandboxes.options)
    with pytest.raises(InputError, match="What was done so far is in the state's `diff`"):
        await repair.answer(APPROVE)
    assert "+add()" in (await repair.values())["diff"]
    assert await alive(sandboxes, thread=repair.thread_id) == []


@pytest.mark.parametrize(
    "tamper",
    [
        "echo '{}' > .repair/baseline.json",
        "echo exit 0 > .repair/baseline/tests/run.sh; echo >> project/tests/run.sh",
    ],
)
async def test_tampering_with_the_kept_copy_is_noticed(
    make_repair: MakeRepair, settings: Settings, sandboxes: E2BLocal, tamper: str
) -> None:
    """State holds digests of what the copy must be: a changed one is not used."""
    repair = make_repair(plan(ADD, DOUBLE))
    await uploaded(settings, repair, tar())
    await repair.run({"test_command": TEST_COMMAND})
    await in_the_sandbox(sandboxes, repair, tamper)
    with pytest.raises(SandboxError, match="was changed in the sandbox"):
        await repair.answer(APPROVE)


async def test_another_archive_than_the_one_on_record_is_refused(
    make_repair: MakeRepair, settings: Settings, sandboxes: E2BLocal
) -> None:
    """The digest in state names what was checked at the door; no sandbox is left behind."""
    repair = make_repair(plan(ADD))
    await uploaded(settings, repair, tar())
    await in_the_sandbox(sandboxes, repair, "echo other > .repair/archive")
    with pytest.raises(InputError, match="upload it again"):
        await repair.run({"test_command": TEST_COMMAND})
    assert await alive(sandboxes, thread=repair.thread_id) == []


async def test_archive_in_a_sandbox_that_fell_back_is_unpacked_again(
    make_repair: MakeRepair, settings: Settings, sandboxes: E2BLocal
) -> None:
    """The mark is gone, the archive is not: told, unpacked anew, and the repair goes on (A7)."""
    repair = make_repair(plan(ADD, DOUBLE))
    await uploaded(settings, repair, tar())
    await repair.run({"test_command": TEST_COMMAND})
    await in_the_sandbox(sandboxes, repair, "rm -rf .repair/marker .repair/baseline* project")
    state = await repair.answer(APPROVE)
    assert state["status"] == "passed"
    assert "it fell back to an older state" in state["warnings"][0]
