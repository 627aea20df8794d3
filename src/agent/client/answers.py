"""Answers to open questions, checked before they are sent: the server drops what it has no question for."""

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph_sdk.client import LangGraphClient

from agent.client.account import account
from agent.client.errors import NotFoundError, StaleAnswerError, Where, explained
from agent.client.events import Interrupt
from agent.client.open_questions import open_questions

ELSEWHERE = "The question was answered elsewhere"


async def lost_among(client: LangGraphClient, where: Where, answers: Mapping[str, Any]) -> list[Interrupt]:
    """Return the questions among the answered ones that the server has lost; they must be asked again first.

    Raises:
        StaleAnswerError: an answer is to nothing that is open, or there is none.
        NotFoundError: the thread or its state is gone.
        ClientError: the server did not say.
    """
    with explained(where):
        questions = await open_questions(client, _thread(where))
    open_ids = [question.id for question in questions.all]
    stale = sorted(answers.keys() - set(open_ids))
    if stale and not open_ids:
        now = await account(client, where)
        if now.works:
            raise StaleAnswerError(ELSEWHERE, where, "A run works on it.")
        if now.forgotten:
            problem = "The server has forgotten this thread's state; the answer was not sent"
            raise NotFoundError(problem, where, "Start a new one.", 404)
    if not answers or stale:
        problem = f"No open question {', '.join(stale)}" if stale else "No answer was given"
        rest = f"Open now: {', '.join(open_ids)}." if open_ids else "The thread waits for nothing."
        raise StaleAnswerError(problem, where, rest, tuple(open_ids))
    return [question for question in questions.lost if question.id in answers]


async def refuse_others(client: LangGraphClient, where: Where, lost: Sequence[Interrupt]) -> None:
    """See that the questions were asked again, in the same words.

    Raises:
        StaleAnswerError: one was not.
        ClientError: the server did not say.
    """
    with explained(where):
        now = (await open_questions(client, _thread(where))).kept
    if any(question not in now for question in lost):
        problem = "The server had lost the question, and does not ask the same again"
        open_ids = tuple(question.id for question in now)
        raise StaleAnswerError(problem, where, "Look at what it asks now.", open_ids)


def _thread(where: Where) -> str:
    assert where.thread_id is not None
    return where.thread_id
