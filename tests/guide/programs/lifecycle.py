# A program of E2B's LangGraph guide: "Let the sandbox outlive the interrupt".
# The guide has the creation; lines that were added to see its effect are marked.
# ruff: noqa: T201
from e2b_code_interpreter import Sandbox  # added

sandbox = Sandbox.create(
    timeout=600,
    lifecycle={"on_timeout": "pause", "auto_resume": True},
)
sandbox.run_code("kept = 42")  # added
sandbox.pause()  # added: what the timeout would do
print(Sandbox.get_info(sandbox.sandbox_id).state.value)  # added
print(sandbox.run_code("kept").text)  # added: resumes it
print(Sandbox.get_info(sandbox.sandbox_id).state.value)  # added
sandbox.kill()  # added
