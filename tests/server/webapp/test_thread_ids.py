"""A thread's id in a path has one form: guard and handler cannot read it in two ways."""

from urllib.parse import unquote

import pytest
from starlette.routing import Match, Route

from agent.server.webapp import app

THREAD = "019b0000-abcd-7000-8000-000000000001"
OTHER_FORMS = (
    THREAD.replace("-", ""),
    THREAD.upper(),
    "{" + THREAD + "}",
    f"urn:uuid:{THREAD}",
    f" {THREAD}",
    f"{THREAD}%00",
    f"{THREAD}%2F",
    f"{THREAD}/.",
    f"/{THREAD}",
    f"./{THREAD}",
    f"x/../{THREAD}",
    f"%2e%2e%2fthreads%2f{THREAD}",
    "..",
    "%2e%2e",
    "%252e%252e",
    ".",
    "",
    "search",
    THREAD.translate({ord("0"): "\u0660"}),
)


def matched(method: str, path: str) -> bool:
    """Whether a request gets to the guard of a route that is for a thread."""
    scope = {"type": "http", "method": method, "path": unquote(path), "root_path": ""}
    return any(
        route.matches(scope)[0] is Match.FULL for route in app.routes if "{thread_id:thread}" in route.path
    )


def test_every_route_that_asks_about_a_thread_takes_its_id_in_one_form() -> None:
    """Those that a signature guards alone are for an id exactly as it was signed."""
    for route in app.routes:
        assert isinstance(route, Route)
        guard = getattr(route.endpoint, "guarded_by", "")
        if "thread" in guard or "upload" in guard:
            assert "{thread_id:thread}" in route.path, route.path


@pytest.mark.parametrize("form", OTHER_FORMS)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/files/{}/f"),
        ("GET", "/artifacts/{}"),
        ("POST", "/uploads/{}"),
        ("PUT", "/uploads/{}/project"),
    ],
)
def test_other_forms_of_an_id_reach_neither_guard_nor_handler(method: str, path: str, form: str) -> None:
    """Whatever the server itself would know the thread by; a path is decoded once, as it is sent."""
    assert matched(method, path.format(THREAD))
    assert not matched(method, path.format(form))
