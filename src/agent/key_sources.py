"""A key goes only to an address from the same place.

Variables come from two places, what a user exported or typed and a project's `.env`. Merged name by name, the
key that the user exported for one address would be sent to another that the file names.
"""

from collections.abc import Collection, Mapping

from agent.errors import SettingsError

SERVER, SERVER_KEY = "LANGGRAPH_URL", "LANGGRAPH_API_KEY"
SECRET_ENDINGS = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
"""How the variables that hold secrets are named, by those who name them well."""
_OTHER_NAMES = {"LANGCHAIN": "LANGSMITH"}
"""First words of variables that a service heeds beside its own."""
_ADDRESS_ENDINGS = ("_URL", "_URI", "_HOST", "_DOMAIN", "_ENDPOINT", "_BASE", "_PROXY")


def merged(
    exported: Mapping[str, str], file: Mapping[str, str], *, usual_server: str, server: str | None = None
) -> dict[str, str]:
    """Return the variables of both places, those that are exported first.

    The LangGraph server's key is the one from the place that its address comes from, or none. A file that
    names no address, or the usual one, has its key for whichever server the user names.

    Args:
        exported: the process's variables.
        file: those of the project's `.env`.
        usual_server: the address where none is named.
        server: the address as it was typed, before all others.
    """
    both = {**file, **exported}
    of_file = _address(file, usual_server)
    of_user = (server or exported.get(SERVER, "").strip()).rstrip("/")
    if not of_user and of_file:
        both[SERVER_KEY] = file.get(SERVER_KEY, "")
    elif of_user and of_file not in {"", of_user}:
        both[SERVER_KEY] = exported.get(SERVER_KEY, "")
    return both


def _address(file: Mapping[str, str], usual: str) -> str:
    address = file.get(SERVER, "").strip().rstrip("/")
    return "" if address == usual else address


def refuse_mixed(
    exported: Mapping[str, str], file: Mapping[str, str], services: Collection[str] | None = None
) -> None:
    """Refuse a file that names where the key that a user exported would be sent.

    A key and an address belong together when their names begin with the same word, as OPENAI_API_KEY and
    OPENAI_BASE_URL do.

    Args:
        exported: the process's variables.
        file: those of the project's `.env`.
        services: the first words that count, such as E2B; default all but the LangGraph server's.

    Raises:
        SettingsError: it does; says which variables, and what to do.
    """
    for key, secret in exported.items():
        service = _service(key)
        if not (secret.strip() and key.endswith(SECRET_ENDINGS)) or file.get(key) == secret:
            continue
        if service not in services if services is not None else service == SERVER.partition("_")[0]:
            continue
        for name, value in file.items():
            of_service = _service(name) == service and not exported.get(name, "").strip()
            if of_service and value.strip() and (name.endswith(_ADDRESS_ENDINGS) or "://" in value):
                raise SettingsError(
                    f"{key} is exported, and {name} stands in .env: a key goes only to an address from the "
                    "same place. Export both, or write both into .env."
                )


def _service(name: str) -> str:
    word = name.partition("_")[0]
    return _OTHER_NAMES.get(word, word)
