"""Asking a human before an agent's risky tool calls."""

from agent.approvals.answers import AnswerWatch
from agent.approvals.decisions import DECISIONS, Decision
from agent.approvals.middleware import ApprovalsMiddleware
from agent.approvals.seals import Seals

__all__ = ["DECISIONS", "AnswerWatch", "ApprovalsMiddleware", "Decision", "Seals"]
