"""Which chat model a run uses."""

import pytest
from langchain_openai import ChatOpenAI

from agent.errors import ModelError
from agent.models import chat_model
from agent.scripted.model import ScriptedChatModel
from agent.settings import Settings


def test_chat_model_defaults_to_responses_api_with_high_effort() -> None:
    """The default is OpenAI's reasoning model, through the Responses API, thinking hard."""
    model = chat_model(Settings.from_env({"OPENAI_API_KEY": "sk-x"}))
    assert isinstance(model, ChatOpenAI)
    assert (model.model_name, model.use_responses_api, model.reasoning_effort) == (
        "gpt-5.6-luna",
        True,
        "high",
    )


def test_chat_model_sends_no_effort_to_a_model_that_does_not_reason() -> None:
    """Such a model refuses the option, so it is left out."""
    model = chat_model(Settings.from_env({"OPENAI_API_KEY": "sk-x"}), "openai:gpt-4o")
    assert isinstance(model, ChatOpenAI)
    assert model.reasoning_effort is None


def test_chat_model_names_the_missing_key() -> None:
    """Without a key the error names the variable and a way on."""
    with pytest.raises(ModelError, match=r"OPENAI_API_KEY is not set.*MODEL=scripted:repair"):
        chat_model(Settings.from_env({}))


@pytest.mark.parametrize("name", ["zzz", "nobody:zzz", "cohere:command-a"])
def test_chat_model_says_what_is_wrong_with_a_name(name: str) -> None:
    """An unknown provider or a missing package is one line with the name in it."""
    with pytest.raises(ModelError, match=name) as caught:
        chat_model(Settings.from_env({}), name)
    assert "\n" not in str(caught.value)


def test_chat_model_scripted_needs_no_key() -> None:
    """`scripted:` names a script of the package."""
    assert isinstance(chat_model(Settings.from_env({"MODEL": "scripted:chat"})), ScriptedChatModel)
