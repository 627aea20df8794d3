"""Run `plan_execute` on a server until it asks; approve it in a second run of this program; synchronous.

    python examples/client_sync.py http://127.0.0.1:2024 FOLDER      prints the plan and the thread
    python examples/client_sync.py http://127.0.0.1:2024 THREAD      approves it and prints the diff

Needs langgraph-sdk and nothing else of this package.
"""

import sys
from pathlib import Path

from langgraph_sdk import get_sync_client


def start(url: str, folder: Path) -> None:
    """Start a repair and print its plan."""
    project = {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*.py"))}
    with get_sync_client(url=url, api_key=None) as client:
        thread_id = client.threads.create()["thread_id"]
        client.runs.wait(thread_id, "plan_execute", input={"project": project})
        for question in client.threads.get_state(thread_id)["interrupts"]:
            print(question["value"]["action_requests"][0]["description"])
        print(thread_id)


def approve(url: str, thread_id: str) -> None:
    """Approve what the thread waits for, days later if need be, and print the diff."""
    with get_sync_client(url=url, api_key=None) as client:
        questions = client.threads.get_state(thread_id)["interrupts"]
        answers = {question["id"]: {"decisions": [{"type": "approve"}]} for question in questions}
        client.runs.wait(thread_id, "plan_execute", command={"resume": answers})
        values = client.threads.get_state(thread_id)["values"]
        print(values["status"])
        print(values["diff"])


if __name__ == "__main__":
    if Path(sys.argv[2]).is_dir():
        start(sys.argv[1], Path(sys.argv[2]))
    else:
        approve(sys.argv[1], sys.argv[2])
