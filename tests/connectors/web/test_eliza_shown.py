"""What the ElizaOS API answers to one dialogue stays the same, field by field.

`eliza_shown.txt` has it all. When a change of it is meant, write it anew, and read the
difference before you commit it:

    python -m tests.connectors.web.test_eliza_shown
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import trio

from tests.fakes.web.eliza import ANNA, API, BEN, SAM, ZERO, ZOE, WebBed, open_web

SHOWN = Path(__file__).with_name("eliza_shown.txt")

ANEW = "if this is meant: python -m tests.connectors.web.test_eliza_shown"

ROOM = {"name": "room", "type": "GROUP", "participantCentralUserIds": [ZOE, ANNA]}
WORDS = {"content": "hello", "author_id": ZOE, "message_server_id": ZERO}
SESSION = {"agentId": ANNA, "userId": ZOE, "metadata": {"platform": "test"}}

CALLS: tuple[tuple[str, str, Any], ...] = (
    ("GET", "/api/agents", None),
    ("GET", f"/api/agents/{ANNA}", None),
    ("GET", f"/api/agents/{ANNA}/panels", None),
    ("GET", "/api/agents/worlds", None),
    ("GET", "/api/server/ping", None),
    ("GET", "/api/server/hello", None),
    ("GET", "/api/system/config", None),
    ("GET", f"{API}/message-server/current", None),
    ("GET", f"{API}/message-servers", None),
    ("GET", f"{API}/message-servers/{ZERO}/agents", None),
    ("GET", f"{API}/agents/{ANNA}/message-servers", None),
    ("POST", f"{API}/channels", ROOM),
    ("GET", f"{API}/dm-channel?currentUserId={ZOE}&targetUserId={BEN}", None),
    ("GET", f"{API}/message-servers/{ZERO}/channels", None),
    ("GET", f"{API}/channels/$id/details", None),
    ("GET", f"{API}/channels/$id/participants", None),
    ("POST", f"{API}/channels/$id/agents", {"agentId": BEN}),
    ("GET", f"{API}/channels/$id/agents", None),
    ("POST", f"{API}/channels/$id/messages", WORDS | {"transport": "http"}),
    ("POST", f"{API}/channels/$id/messages", {"content": ""}),
    ("GET", f"{API}/channels/$id/messages", None),
    ("GET", f"{API}/channels/$id/messages?limit=1", None),
    ("POST", f"{API}/messages/search", {"query": "hello"}),
    ("GET", f"/api/memory/{ANNA}/rooms", None),
    ("GET", f"/api/memory/{ANNA}/memories", None),
    ("GET", f"/api/agents/{ANNA}/runs", None),
    ("GET", f"/api/agents/{ANNA}/logs", None),
    ("PATCH", f"{API}/channels/$id", {"name": "lobby", "participants": [SAM]}),
    ("DELETE", f"{API}/channels/$id/messages", None),
    ("GET", f"{API}/channels/$id/messages", None),
    ("DELETE", f"{API}/channels/$id/agents/{BEN}", None),
    ("DELETE", f"{API}/channels/$id", None),
    ("GET", f"{API}/channels/$id/details", None),
    ("GET", f"{API}/sessions", None),
    ("GET", f"{API}/jobs/nobody", None),
    ("POST", f"{API}/sessions", SESSION | {"userId": "not an id"}),
    ("GET", "/api/nothing", None),
)
"""Method, path, and body; `$id` is that of what was made last by a call."""

UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z?|\b1\d{12}\b")


async def dialogue(bed: WebBed) -> str:
    """Make all calls, and give them with their answers."""
    told: list[str] = []
    made = ""
    for method, path, body in CALLS:
        where = path.replace("$id", made)
        answer = await bed.client.request(method, where, json=body)
        shown = msgspec.json.format(answer.content).decode() if answer.content else ""
        told.append(f"{method} {path}\n{answer.status_code} {shown}\n")
        if method == "POST" and path.endswith("/channels"):
            made = answer.json()["data"]["id"]
    return "\n".join(told)


def steady(text: str) -> str:
    """Replace what is another each time: moments, and ids by their order."""
    known: dict[str, str] = {}
    text = UUID.sub(lambda it: known.setdefault(it[0], f"id-{len(known)}"), text)
    return MOMENT.sub("<moment>", text)


async def shown() -> str:
    """Run the dialogue with a company."""
    async with open_web() as bed, trio.open_nursery() as nursery:
        nursery.start_soon(bed.answer_all)
        text = steady(await dialogue(bed))
        nursery.cancel_scope.cancel()
    return text


async def test_the_same_dialogue_has_the_same_answers() -> None:
    found = (await shown()).splitlines()
    assert found == SHOWN.read_text().splitlines(), ANEW


if __name__ == "__main__":
    SHOWN.write_text(trio.run(shown))
