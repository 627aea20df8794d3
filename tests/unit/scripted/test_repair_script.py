"""The script `repair` on the bundled project: what fails, what is planned, written and reported."""

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.tools import BaseTool, tool

from agent.repair.plan import Plan, Step
from agent.repair.prompts import EXECUTOR, PLANNER, plan_request, step_request
from agent.repair.report import TestReport
from agent.sandbox.e2b.inside import files
from agent.sandbox.provider import CommandResult
from agent.scripted.bundled import bundled_project
from agent.scripted.model import ScriptedChatModel
from agent.tools.file_results import file_text
from agent.tools.results import command_text

TEST_COMMAND = "python -m pytest -q"
PRICING = {
    "tests/test_pricing.py::test_ten_pieces_get_five_percent",
    "tests/test_pricing.py::test_fifty_pieces_get_ten_percent",
}
BASKET = {
    "tests/test_basket.py::test_order_keeps_what_was_in_the_basket",
    "tests/test_basket.py::test_next_purchase_leaves_the_first_order_alone",
    "tests/test_receipt.py::test_receipt_of_a_checked_out_basket_lists_its_products",
}


@dataclass
class Workbench:
    """A project in a folder, and the executor's tools on it, worded as the sandbox tools word results."""

    folder: Path
    max_bytes: int = 50_000

    def put(self, project: dict[str, str]) -> "Workbench":
        """Write files."""
        for path, text in project.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(text)
        return self

    def files(self) -> dict[str, str]:
        """Return what the project holds now."""
        return {
            path.relative_to(self.folder).as_posix(): path.read_text()
            for path in sorted(self.folder.rglob("*.*"))
            if path.is_file() and path.suffix in {".py", ".toml"}
        }

    def run(self, command: str = TEST_COMMAND) -> CommandResult:
        """Run a test command."""
        words = [sys.executable if word == "python" else word for word in shlex.split(command)]
        env = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [*words, "-p", "no:cacheprovider"], cwd=self.folder, env=env, capture_output=True, text=True
        )
        return CommandResult(done.returncode, done.stdout, done.stderr)

    def report(self) -> TestReport:
        """Run the tests."""
        return TestReport.of(self.run())

    def tools(self) -> list[BaseTool]:
        """Return the executor's tools."""

        @tool
        def read_file(path: str) -> str:
            """Read a file."""
            if not (self.folder / path).is_file():
                return f"error: {path} does not exist"
            whole, root = str(self.folder / path), str(self.folder)
            return file_text(path, files.read(whole, root, [], 1, None, None, self.max_bytes), self.max_bytes)

        @tool
        def write_file(path: str, content: str) -> str:
            """Write a file."""
            (self.folder / path).write_text(content)
            return f"Wrote {len(content)} bytes to {path}."

        @tool
        def run_command(command: str) -> str:
            """Run a command."""
            return command_text(self.run(command), 120, self.max_bytes)

        return [read_file, write_file, run_command]

    def planner_messages(self) -> list[BaseMessage]:
        """Return what the plan node shows."""
        request = plan_request(
            project=self.files(), test_command=TEST_COMMAND, report=self.report(), iteration=1, tries=3
        )
        return [SystemMessage(PLANNER), HumanMessage(request)]


@pytest.fixture
def shop(tmp_path: Path) -> Workbench:
    """Return the bundled project on a workbench."""
    return Workbench(tmp_path).put(bundled_project())


MODEL = ScriptedChatModel.from_script("repair")


async def plan(shop: Workbench) -> Plan | None:
    """Return what the planner plans for a project."""
    found = await MODEL.with_structured_output(Plan).ainvoke(shop.planner_messages())
    assert found is None or isinstance(found, Plan)
    return found


async def carry_out(shop: Workbench, step: Step) -> list[BaseMessage]:
    """Return the messages of the executor at work on a step."""
    executor = create_agent(MODEL, shop.tools(), system_prompt=EXECUTOR)
    told = step_request(Plan(summary="", steps=[step]), 0, TEST_COMMAND)
    messages: list[BaseMessage] = (await executor.ainvoke({"messages": [HumanMessage(told)]}))["messages"]
    return messages


def called(messages: list[BaseMessage]) -> list[str]:
    """Return the tools called, in order."""
    return [call["name"] for message in messages for call in getattr(message, "tool_calls", [])]


def fix(project: dict[str, str], path: str, old: str, new: str) -> dict[str, str]:
    """Return the project with one place replaced."""
    assert project[path].count(old) == 1
    return project | {path: project[path].replace(old, new)}


def test_bundled_project_fails_exactly_the_named_tests(shop: Workbench) -> None:
    """Two bugs in two modules, five failing tests of fourteen."""
    report = shop.report()
    assert (report.exit_code, report.failed, report.passed) == (1, 5, 9)
    assert set(report.failing) == PRICING | BASKET


@pytest.mark.parametrize(
    ("path", "old", "new", "left"),
    [
        ("shop/pricing.py", "quantity > pieces", "quantity >= pieces", BASKET),
        ("shop/basket.py", "Order(self.lines)", "Order(dict(self.lines))", PRICING),
    ],
)
async def test_half_repaired_project_gets_a_plan_of_one_step(
    shop: Workbench, path: str, old: str, new: str, left: set[str]
) -> None:
    """Each bug fails its own tests, and a step is planned only for the bug that is still there."""
    shop.put(fix(bundled_project(), path, old, new))
    assert set(shop.report().failing) == left
    found = await plan(shop)
    assert found is not None
    assert [step.file for step in found.steps] == [
        {"shop/pricing.py", "shop/basket.py"}.difference({path}).pop()
    ]


async def test_plan_carried_out_turns_the_tests_green(shop: Workbench) -> None:
    """Planned, read, written, tested and reported: nothing but the two lines is changed."""
    found = await plan(shop)
    assert found is not None
    assert [step.file for step in found.steps] == ["shop/pricing.py", "shop/basket.py"]
    assert "test_ten_pieces_get_five_percent" in found.steps[0].reason
    for step in found.steps:
        messages = await carry_out(shop, step)
        assert called(messages) == ["read_file", "write_file", "run_command"]
        assert "pass now" in str(messages[-1].content)
    assert shop.report().green
    before = bundled_project()
    changed = [path for path, text in shop.files().items() if text != before[path]]
    assert changed == ["shop/basket.py", "shop/pricing.py"]
    assert (
        shop.files()["shop/basket.py"].replace("dict(self.lines)", "self.lines") == before["shop/basket.py"]
    )


async def test_tests_that_still_fail_are_reported(shop: Workbench) -> None:
    """The report of a step says what was seen, not what was hoped for."""
    found = await plan(shop)
    assert found is not None
    shop.put({"tests/test_pricing.py": "def test_impossible():\n    assert 1 == 2\n"})
    report = str((await carry_out(shop, found.steps[0]))[-1].content)
    assert "still fail: 1 failed" in report


async def test_tests_that_do_not_run_are_reported(shop: Workbench) -> None:
    """A test command that ends without counting tests is shown as it ended."""
    found = await plan(shop)
    assert found is not None
    (shop.folder / "tests/test_pricing.py").unlink()
    report = str((await carry_out(shop, found.steps[0]))[-1].content)
    assert "did not run to a result" in report
    assert "exit_code: 4" in report


@pytest.mark.parametrize(
    ("file", "reported"),
    [("shop/receipt.py", "I changed nothing"), ("shop/missing.py", "does not exist")],
)
async def test_step_it_cannot_do_changes_nothing(shop: Workbench, file: str, reported: str) -> None:
    """A file without the expected place, or no file at all, is reported and left alone."""
    messages = await carry_out(shop, Step(file=file, change="Do something.", reason="Why not."))
    assert called(messages) == ["read_file"]
    assert reported in str(messages[-1].content)
    assert shop.files() == bundled_project()


async def test_file_shown_in_part_is_not_written_back(shop: Workbench) -> None:
    """A clipped text is no text to correct: writing it would lose what was left out."""
    shop.max_bytes = 400
    messages = await carry_out(shop, Step(file="shop/pricing.py", change="Correct it.", reason="It fails."))
    assert called(messages) == ["read_file"]
    assert "could not read the whole" in str(messages[-1].content)
    assert shop.files() == bundled_project()


async def test_unknown_failure_gets_no_plan(shop: Workbench) -> None:
    """With no defect it knows in sight the planner says so; a plan is not made up."""
    project = fix(bundled_project(), "shop/pricing.py", "quantity > pieces", "quantity >= pieces")
    project = fix(project, "shop/basket.py", "Order(self.lines)", "Order(dict(self.lines))")
    shop.put(fix(project, "shop/receipt.py", "02d", "03d"))
    assert await plan(shop) is None
    answer = await MODEL.bind_tools([Plan]).ainvoke(shop.planner_messages())
    assert "no defect" in str(answer.content)


async def test_defect_in_the_file_is_not_enough(shop: Workbench) -> None:
    """A step needs a failing test of that module, too: what no test complains about is left alone."""
    (shop.folder / "tests/test_pricing.py").unlink()
    found = await plan(shop)
    assert found is not None
    assert [step.file for step in found.steps] == ["shop/basket.py"]
