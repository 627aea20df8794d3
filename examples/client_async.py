"""Run `plan_execute` on a server, approve its plan, follow it to the end; asynchronous.

    python examples/client_async.py http://127.0.0.1:2024 FOLDER

Needs langgraph-sdk and nothing else of this package.
"""

import asyncio
import sys
from pathlib import Path

from langgraph_sdk import get_client


def read(folder: Path) -> dict[str, str]:
    """Return the folder's Python files, path to text."""
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*.py"))}


async def main(url: str, folder: str) -> None:
    """Repair the project in a folder, and print the diff."""
    async with get_client(url=url, api_key=None) as client:
        thread_id = (await client.threads.create())["thread_id"]
        request: dict[str, object] = {"input": {"project": read(Path(folder))}}
        while True:
            async for part in client.runs.stream(
                thread_id, "plan_execute", stream_mode="custom", stream_resumable=True, **request
            ):
                if part.event == "error":
                    raise SystemExit(f"the run failed: {part.data['message']}")
                if part.event == "custom" and part.data["type"] == "progress":
                    print(part.data["message"])
            # Whether the thread waits for a human is in its state, whatever the stream said.
            state = await client.threads.get_state(thread_id)
            if not state["interrupts"]:
                break
            answers = {}
            for question in state["interrupts"]:
                print(question["value"]["action_requests"][0]["description"])
                answers[question["id"]] = {"decisions": [{"type": "approve"}]}
            request = {"command": {"resume": answers}}
        print(state["values"]["status"])
        print(state["values"]["diff"])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
