"""Answers a few questions by running code, for trying the graph `agent` without a key.

It reads each result before it says anything about it.
"""

import re
from collections.abc import Iterator

from agent.scripted.conversation import HUMAN, Answer, Conversation, search

LETTERS = (
    r"(?i)\b(?:how many|how often|count)(?: times)?(?: does| do| is)?(?: the)?(?: letter)? "
    r"""["'‘“`]?(?P<letter>[^\W\d_])["'’”`]?s?\b.*\b(?:in|of) (?:the (?:word|name) )?"""
    r"""["'‘“`]?(?P<word>[^\W\d_]{2,})["'’”`]?\W*$"""
)
SUM = (
    r"(?i)^(?:please )?(?:what is|what['’]s|how much is|compute|calculate) "
    r"(?P<sum>[\d(-][\d\s.+*/%()-]*[\d)])[\s?=.]*$"
)
RUN_PYTHON = r"(?is)\b(?:run|execute)\b.*?```(?:python|py)\s*\n(?P<code>.*?)```"
RUN_COMMAND = (
    r"(?is)\b(?:run|execute)\b[^`]*"
    r"(?:```(?:bash|sh|shell|console)?\s*\n(?P<block>.*?)\n```|`(?P<line>[^`\n]+)`)"
)
DRAW = r"(?i)\b(?:plot|chart|graph|draw|diagram)\b"
NUMBERS = r"(?P<numbers>-?\d[\d.]*(?:\s*(?:,|\band\b)\s*(?:and\s+)?-?\d[\d.]*)+)"
READ = (
    r"(?i)^(?:please |can you |could you )?(?:read|show(?: me)?|open|print)\s+(?:the\s+)?(?:file\s+)?"
    r"""[`'"“]?(?P<path>[\w~./-]*[./][\w./-]*)\b[`'"”]?[\s.?!]*$"""
)
WRITE_QUOTED = (
    r"""(?is)^(?:please )?(?:write|save|put)\s+(?P<quote>["'`])(?P<content>.*)(?P=quote)\s+"""
    r"""(?:to|into|in)\s+(?:the\s+)?(?:file\s+)?["'`]?(?P<path>[\w~./-]*\w)\b"""
)
WRITE_NAMED = (
    r"""(?is)^(?:please )?(?:write|create|save)\s+(?:to\s+)?(?:the\s+)?(?:file\s+)?"""
    r"""[`'"]?(?P<path>[\w~./-]*\w)[`'"]?"""
    r"""(?:\s+with)?(?:\s+the)?(?:\s+(?:text|content))?\s*:\s*(?:```\w*\n)?(?P<content>.*?)(?:\n?```)?\s*\Z"""
)
LIST = r"(?i)\b(?:list|show|which|what)\b.*\bfiles\b"

BARS = """\
import re

import matplotlib.pyplot as plt

values = [float(number) for number in re.findall(r"-?\\d+(?:\\.\\d+)?", {numbers!r})]
plt.bar(range(1, len(values) + 1), values)
plt.title("Bar chart")
plt.show()"""
FUNCTION = """\
import matplotlib.pyplot as plt
import numpy as np

x = np.linspace(0, 10, 500)
plt.plot(x, np.{function}(x))
plt.title("{function}(x)")
plt.show()"""
COUNT = "word, letter = {word!r}, {letter!r}\nprint(word.lower().count(letter.lower()))"

HELP = """\
I am a scripted stand-in for a chat model: no model is asked, and I understand only a few things.
Try one of these:

- How many r's are in 'strawberry'?
- What is 17 * 23?
- Plot sin(x), or: draw a bar chart of 3, 1 and 2
- Run `ls -la`
- Write notes.txt: hello
- Read notes.txt
- List the files

Set MODEL and its key to talk to a real one."""


def chat(talk: Conversation) -> Iterator[Answer]:
    """Answer a question with a call, and a result with words."""
    if talk.newest == HUMAN:
        yield from _calls(talk.human)
        yield Answer(HELP)
    elif words := _failure(talk.newest, talk.result):
        yield Answer(words)
    else:
        yield from map(Answer, _words(talk))


def _calls(human: str) -> Iterator[Answer]:
    if found := search(LETTERS, human):
        yield Answer.call("run_python", "I count them with Python.", code=COUNT.format(**found.groupdict()))
    if found := search(SUM, human):
        yield Answer.call("run_python", "I compute it with Python.", code=f"print({found['sum']})")
    if found := search(RUN_PYTHON, human):
        yield Answer.call("run_python", code=found["code"])
    if found := search(RUN_COMMAND, human):
        yield Answer.call("run_command", command=found["block"] or found["line"])
    if search(DRAW, human):
        yield from _drawings(human)
    if found := search(READ, human):
        yield Answer.call("read_file", path=found["path"])
    if found := search(WRITE_QUOTED, human) or search(WRITE_NAMED, human):
        yield Answer.call("write_file", path=found["path"], content=f"{found['content']}\n")
    if search(LIST, human):
        yield Answer.call("list_files", path=".")


def _drawings(human: str) -> Iterator[Answer]:
    if found := search(NUMBERS, human):
        yield Answer.call("run_python", "I draw the numbers as bars.", code=BARS.format(**found.groupdict()))
    if found := search(r"\b(?P<function>sin|cos|tanh|exp|sqrt)\b", human):
        told = f"I draw {found['function']}(x) with matplotlib."
        yield Answer.call("run_python", told, code=FUNCTION.format(**found.groupdict()))
    yield Answer.call(
        "run_python",
        "I can draw numbers you give me, or sin, cos, tanh, exp and sqrt of x. As an example I draw sin(x).",
        code=FUNCTION.format(function="sin"),
    )


def _failure(tool: str, result: str) -> str:
    """Return what went wrong in words; empty if nothing did."""
    if found := re.match(r"(?s)error: (.*\S)", result):
        return f"That did not work: {found[1]}"
    if tool == "run_python":
        if found := search(r"^<error>\n(.+)$", result):
            return f"That did not work: the code stopped with `{found[1]}`."
        if found := search(r"^(timed out after .+)\s*\Z", result):
            return f"The code did not finish: it {found[1]}."
    if tool == "run_command":
        if found := re.match(r"(?s)exit_code: (-?[1-9]\d*)\n?(.*)", result):
            return f"The command failed with exit code {found[1]}.\n\n{found[2]}"
        if found := re.match(r"(?!exit_code: )(.+)$", result, re.MULTILINE):
            return f"I do not know that the command did its work: {found[1]}."
    return ""


def _words(talk: Conversation) -> Iterator[str]:
    """Return what is said of a result that is no failure."""
    human, result = talk.human, talk.result
    match talk.newest:
        case "run_python":
            counted, value = search(r"<stdout>\n(\d+)$", result), search(r"<stdout>\n(.+)$", result)
            if counted and (asked := search(LETTERS, human)):
                yield f"The letter “{asked['letter']}” in “{asked['word']}”: Python counts {counted[1]}."
            if value and (asked := search(SUM, human)):
                yield f"{asked['sum']} = {value[1]}"
            if search(DRAW, human):
                yield _drawn(result)
            yield f"It ran without an error.\n\n{result}"
        case "run_command":
            yield f"It ran without an error.\n\n{result}"
        case "read_file":
            if file := search(r'(?s)<file path="([^"]*)"[^>]*>\n(.*)</file>', result):
                yield f"This is {file[1]}:\n\n```\n{file[2]}```"
        case "write_file":
            yield result
        case "list_files":
            yield f"These files are there:\n\n{result}"


def _drawn(result: str) -> str:
    if link := search(r"^!\[[^\]]*\]\(\S+\)$", result):
        return f"The code ran and the figure is drawn.\n\n{link[0]}"
    if search("(?i)figure|image|png|chart", result):
        return "The code ran and the figure is drawn."
    return f"The code ran, but I see no figure in its result:\n\n{result}"
