"""Code on a real kernel."""

from __future__ import annotations

import asyncio
import functools

import pytest
from e2b import NotFoundException, TimeoutException
from e2b_code_interpreter import AsyncSandbox
from e2b_code_interpreter.charts import ChartType


async def test_state_stays_between_cells(shared: AsyncSandbox) -> None:
    """Variables live on, and cells are counted."""
    await shared.run_code("x = 20")
    first, second = await shared.run_code("x + 1"), await shared.run_code("x + 2")
    assert (first.text, second.text) == ("21", "22")
    assert second.execution_count == int(first.execution_count or 0) + 1


async def test_output_streams(shared: AsyncSandbox) -> None:
    """Standard output and error are told apart and reach the callbacks."""
    out: list[str] = []
    err: list[str] = []
    execution = await shared.run_code(
        "import sys\nprint('o')\nprint('e', file=sys.stderr)",
        on_stdout=lambda message: out.append(message.line),
        on_stderr=lambda message: err.append(message.line),
    )
    assert (out, err) == (["o\n"], ["e\n"])
    assert "".join(execution.logs.stdout) == "o\n"


async def test_an_exception_has_name_value_and_plain_traceback(shared: AsyncSandbox) -> None:
    """The traceback is text without terminal colours."""
    error = (await shared.run_code("def f():\n    return 1 / 0\nf()")).error
    assert error is not None
    assert (error.name, error.value) == ("ZeroDivisionError", "division by zero")
    assert "return 1 / 0" in error.traceback
    assert "\x1b" not in error.traceback


async def test_results_come_in_every_format(shared: AsyncSandbox) -> None:
    """A chart is a PNG; a table is text, HTML and data; a string loses its quotes."""
    execution = await shared.run_code(
        "import matplotlib.pyplot as plt, pandas as pd\n"
        "plt.plot([1, 2, 3]); plt.show()\n"
        "pd.DataFrame({'a': [1, 2]})"
    )
    chart, table = execution.results
    assert chart.png is not None
    assert not chart.is_main_result
    assert table.is_main_result
    assert "<table" in str(table.html)
    assert table.data == {"a": [1, 2]}
    assert (await shared.run_code("'text'")).text == "text"


async def test_a_saved_image_is_shown(shared: AsyncSandbox) -> None:
    """As in E2B's template, an image saved to a named file is a result too."""
    code = "from PIL import Image\nImage.new('RGB', (4, 4)).save('dot.png')\nopen('dot.png', 'rb').read(4)"
    image, value = (await shared.run_code(code)).results
    assert image.png is not None
    assert value.text == "b'\\x89PNG'"


async def test_contexts_are_apart(shared: AsyncSandbox) -> None:
    """Each context has its own variables and folder; a removed one is gone."""
    await shared.files.make_dir("some")
    context = await shared.create_code_context(cwd="/home/user/some")
    assert (context.language, context.cwd) == ("python", "/home/user/some")
    await shared.run_code("x = 1")
    assert (await shared.run_code("x", context=context)).error is not None
    await shared.run_code("open('here', 'w').close()", context=context)
    assert await shared.files.exists("/home/user/some/here")
    assert context.id in [each.id for each in await shared.list_code_contexts()]
    await shared.restart_code_context(context)
    assert (await shared.run_code("1", context=context)).execution_count == 1
    await shared.remove_code_context(context)
    with pytest.raises(NotFoundException):
        await shared.run_code("1", context=context)


async def test_a_timeout_interrupts_the_cell(shared: AsyncSandbox) -> None:
    """After the client has given up the kernel is free again and keeps its variables."""
    await shared.run_code("x = 5")
    with pytest.raises(TimeoutException):
        await shared.run_code("import time\nwhile True: time.sleep(0.01)", timeout=0.5)
    execution = await shared.run_code("x", timeout=30)
    assert execution.error is None
    assert execution.text == "5"


async def test_cells_of_one_context_wait_for_each_other(shared: AsyncSandbox) -> None:
    """Parallel calls run one after the other, each with its own output."""
    cells = [f"print('in {n}'); import time; time.sleep(0.05); print('out {n}')" for n in range(5)]
    executions = await asyncio.gather(*(shared.run_code(cell) for cell in cells))
    assert ["".join(each.logs.stdout) for each in executions] == [f"in {n}\nout {n}\n" for n in range(5)]


async def test_an_error_that_holds_half_a_character_is_told(shared: AsyncSandbox) -> None:
    """The kernel sends it as bytes that are no UTF-8."""
    error = (await shared.run_code("raise Exception('a\\udcffb')")).error
    assert error is not None
    assert (error.name, error.value) == ("Exception", "a\ufffdb")


async def test_variables_of_sandbox_and_cell(shared: AsyncSandbox) -> None:
    """A cell sees the sandbox's variables and its own, and its own are gone afterwards."""
    read = "import os; print(os.environ.get('A'), os.environ.get('B'), os.environ.get('C'))"
    own = await shared.run_code(read, envs={"B": "cell", "C": "cell"})
    assert "".join(own.logs.stdout) == 'it\'s "quoted" cell cell\n'
    assert "".join((await shared.run_code(read)).logs.stdout) == 'it\'s "quoted" sandbox None\n'


async def test_a_kernel_that_dies_is_replaced(shared: AsyncSandbox) -> None:
    """The cell ends with an error and the next one finds a fresh kernel."""
    execution = await shared.run_code("import os; os._exit(1)")
    assert execution.error is not None
    assert execution.error.name == "ContextRestarting"
    assert (await shared.run_code("1 + 1")).text == "2"


async def test_a_chart_comes_with_its_data(shared: AsyncSandbox) -> None:
    """What a program has drawn can be read without looking at the picture."""
    execution = await shared.run_code(
        "import matplotlib.pyplot as plt\nplt.clf(); plt.bar(['a', 'b'], [3, 4]); plt.title('T'); plt.show()"
    )
    chart = execution.results[0].chart
    assert chart is not None
    assert (chart.type, chart.title) == (ChartType.BAR, "T")
    assert [(each.label, each.value) for each in chart.elements] == [("a", 3), ("b", 4)]


async def test_bash_has_a_kernel(shared: AsyncSandbox) -> None:
    """Its folder and variables stay from cell to cell; those of one cell do not."""
    await shared.run_code("cd /tmp; mine=1", language="bash")
    cell = await shared.run_code("echo $mine $PWD $ONCE", language="bash", envs={"ONCE": "it's"})
    assert "".join(cell.logs.stdout) == "1 /tmp it's\n"
    assert "".join((await shared.run_code("echo ${ONCE:-gone}", language="bash")).logs.stdout) == "gone\n"


async def test_javascript_and_typescript_have_a_kernel(shared: AsyncSandbox) -> None:
    """Values, output, modules, variables; a timeout ends a loop and keeps what was set."""
    js = functools.partial(shared.run_code, language="js")
    assert (await js("process.cwd()")).text == (await shared.commands.run("pwd")).stdout.strip()
    own = await js("const kept = 1; console.log(process.env.A, process.env.ONCE)", envs={"ONCE": "cell"})
    assert "".join(own.logs.stdout) == 'it\'s "quoted" cell\n'
    assert (await js("process.env.ONCE || 'gone'")).text == "gone"
    with pytest.raises(TimeoutException):
        await js("while (true) {}", timeout=0.5)
    assert (await js("kept + 1", timeout=30)).text == "2"
    assert (await js("await Promise.resolve(typeof (await import('fs')).readFileSync)")).text == "function"
    error = (await js("null.x")).error
    assert error is not None
    assert error.name == "TypeError"
    typed = await shared.run_code("const n: number = 41; console.log(n + 1)", language="ts")
    assert "".join(typed.logs.stdout) == "42\n"
    languages = [each.language for each in await shared.list_code_contexts()]
    assert languages[:2] == ["python", "javascript"]
    assert "typescript" in languages


async def test_a_language_without_kernel_says_so(shared: AsyncSandbox) -> None:
    """The error names the language."""
    error = (await shared.run_code("1", language="cobol")).error
    assert error is not None
    assert "no kernel for language 'cobol'" in error.value
