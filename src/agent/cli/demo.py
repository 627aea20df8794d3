"""The demo: repair the bundled project on servers of its own, and leave nothing behind."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from agent.cli import exits
from agent.cli.approval import Decide, asked, automatic
from agent.cli.follow import Follower
from agent.cli.local_run import LocalRun
from agent.cli.processes import LocalServerError
from agent.cli.project import find_config
from agent.cli.repair_view import RepairView, show_result
from agent.cli.screen import Screen
from agent.cli.servers import refuse_without_extra
from agent.cli.session import Session
from agent.client import ClientError, Finished, Outcome

if TYPE_CHECKING:
    from agent.settings import Settings

SCRIPTED_MODEL = "scripted:repair"
_GRAPH = Path(__file__).parents[1] / "graphs" / "plan_execute.py"
_DEADLINE_S = 600.0  # of each stretch; the scripted run takes seconds, a real model minutes


def run_demo(
    screen: Screen, settings: "Settings", *, yes: bool = False, keep: bool = False, verbose: bool = False
) -> int:
    """Repair the bundled project and show how.

    Args:
        screen: where to write and ask.
        settings: decides the model and the sandbox service.
        yes: approve the plan without asking.
        keep: keep the servers' logs and state, and say where.
        verbose: show tool output and the model's words too.

    Returns:
        The exit code.
    """
    try:
        refuse_without_extra()
    except LocalServerError as exc:
        screen.error(str(exc))
        return exits.PLATFORM
    model = demo_model(settings)
    own = settings.e2b_api_key is None
    defaults = {"LOG_LEVEL": "WARNING"}
    # Its one sandbox runs commands alone, and tests that want no plugin: there is no use for kernels that are
    # warm, nor for what this Python has beside pytest.
    bare = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    with LocalRun(
        env={"MODEL": model}, defaults=defaults, own_sandboxes=own, warm=0, variables=bare
    ) as local:
        local.keep = keep
        try:
            _start(screen, local, model)
            code = _repair(screen, local, model, decide=_decider(screen, yes), verbose=verbose)
            if code == exits.PLATFORM:  # the run failed
                screen.line(local.server_log(), "dim")
        except (LocalServerError, ClientError) as exc:
            screen.error(_reason(local, exc))
            code = exits.PLATFORM
        code = _check_nothing_left(screen, local, code)
        if keep:
            screen.line(f"Logs and state are kept in {local.folder}", "dim")
    return code


def demo_model(settings: "Settings") -> str:
    """Return the configured model if it was chosen and can run, else the scripted one."""
    chosen = "model" in settings.model_fields_set
    lacks_key = settings.model.startswith("openai:") and settings.openai_api_key is None
    return settings.model if chosen and not lacks_key else SCRIPTED_MODEL


def _decider(screen: Screen, yes: bool) -> Decide:
    if yes:
        return automatic(screen, "--yes was given.")
    if not screen.can_ask:
        return automatic(screen, "there is no terminal to ask on.")
    return asked(screen)


def _start(screen: Screen, local: LocalRun, model: str) -> None:
    screen.line("sandbox-agent demo: repair a small shop whose tests fail", "bold")
    if local.owns_sandboxes and not local.isolated:
        screen.line(
            "  bubblewrap is missing or may not make namespaces: e2b-local runs with --no-isolation, and "
            "sandboxes are plain processes. The code of this demo is known.",
            "yellow",
        )
    with screen.busy("Starting e2b-local" if local.owns_sandboxes else "") as busy:
        local.start_sandboxes()
        busy.update("Starting langgraph dev")
        local.start_server(_config(local.folder))
    where = f"e2b-local at {local.service['E2B_API_URL']}" if local.owns_sandboxes else "E2B"
    screen.line(f"  sandboxes  {where}", "dim")
    screen.line(f"  server     langgraph dev at {local.url}", "dim")
    screen.line(f"  model      {model}{_origin(model)}", "dim")


def _config(folder: Path) -> Path:
    """Return the project's langgraph.json; one for this package's own graph where there is no project."""
    try:
        return find_config()
    except LocalServerError:
        config = folder / "demo.json"
        graphs = {"plan_execute": f"{_GRAPH}:graph"}
        config.write_text(json.dumps({"dependencies": ["."], "graphs": graphs}), encoding="utf-8")
        return config


def _origin(model: str) -> str:
    return " (plays a script, asks no provider)" if model.startswith("scripted:") else ""


def _repair(screen: Screen, local: LocalRun, model: str, *, decide: Decide, verbose: bool) -> int:
    from agent.scripted.bundled import bundled_project

    with Session(local.url) as session:
        driver = session.run(session.server.new_thread("plan_execute"))
        view = RepairView(screen, verbose=verbose)
        follower = Follower(
            session,
            driver,
            screen=screen,
            view=view,
            decide=decide,
            owned=True,
            watch=local.check,
            deadline_s=_DEADLINE_S,
        )
        try:
            stream = driver.start({"project": bundled_project()}, deadline_s=_DEADLINE_S)
            outcome = follower.follow(stream, "Running the tests as they are")
        except KeyboardInterrupt:
            screen.line()
            screen.line("Interrupted: the run is cancelled, the servers are stopped.", "yellow")
            raise
    return _show_outcome(screen, outcome, model)


def _show_outcome(screen: Screen, outcome: Outcome, model: str) -> int:
    if not isinstance(outcome, Finished):
        return exits.PLATFORM
    code = exits.of_status(show_result(screen, outcome))
    made_by = f"the script {model}" if model.startswith("scripted:") else model
    screen.line(f"  Plan and changes come from {made_by}; the tests really ran in the sandbox.", "dim")
    return code


def _reason(local: LocalRun, exc: LocalServerError | ClientError) -> str:
    """Return why the demo failed: a connection that broke is explained by the server that has ended."""
    if isinstance(exc, ClientError):
        try:
            local.check()
        except LocalServerError as ended:
            return str(ended)
    return str(exc)


def _check_nothing_left(screen: Screen, local: LocalRun, code: int) -> int:
    try:
        alive = local.sandboxes_alive()
    except LocalServerError as exc:
        screen.error(str(exc))
        return code or exits.PLATFORM
    if alive is None:
        return code
    if alive and code == exits.PLATFORM:  # what failed could not end them
        screen.line(f"  {len(alive)} of its sandboxes still lived; they end with e2b-local.", "dim")
        return code
    screen.line(f"sandboxes left alive: {len(alive)}", "red" if alive else "dim")
    if alive:
        screen.error(f"  {', '.join(alive)}")
        return code or exits.PLATFORM
    return code
