# A program of E2B's LangGraph guide, unchanged: "A code-execution tool".
# ruff: noqa: T201
from dataclasses import dataclass

from e2b_code_interpreter import Sandbox
from langchain.agents import create_agent
from langchain.tools import ToolRuntime, tool
from langchain_openai import ChatOpenAI


@dataclass
class Context:
    sandbox: Sandbox


@tool
def run_python(code: str, runtime: ToolRuntime[Context]) -> str:
    """Run Python in a Jupyter kernel. Returns stdout, the last result, or the error."""
    execution = runtime.context.sandbox.run_code(code)
    if execution.error:
        return f"{execution.error.name}: {execution.error.value}"
    return "\n".join(execution.logs.stdout) + (execution.text or "")


agent = create_agent(
    ChatOpenAI(model="gpt-5.6-luna", use_responses_api=True, reasoning={"effort": "high"}),
    tools=[run_python],
    system_prompt="Answer by running Python. Check the tool result for an error before answering.",
    context_schema=Context,
)

sandbox = Sandbox.create(timeout=600)
try:
    result = agent.invoke(
        {"messages": [("human", "How many r's are in 'strawberry'? Use code.")]},
        context=Context(sandbox=sandbox),
    )
    print(result["messages"][-1].text)
finally:
    sandbox.kill()
