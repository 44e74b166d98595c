"""What a Chat Completions provider says in a stream, event by event."""

from __future__ import annotations

import msgspec

from tests.fakes.models.server import Step

END = b"data: [DONE]\n\n"


def event(**chunk: object) -> bytes:
    """Write one event."""
    return b"data: " + msgspec.json.encode(chunk) + b"\n\n"


def delta(finish_reason: str | None = None, **content: object) -> bytes:
    """Write the event that adds `content`, and maybe ends."""
    choice = {"index": 0, "delta": content, "finish_reason": finish_reason}
    return event(id="x", object="chat.completion.chunk", choices=[choice])


def call_delta(index: int | None, call_id: str, name: str, arguments: str) -> bytes:
    """Write the event that adds a piece of a tool call."""
    function = {"name": name, "arguments": arguments}
    call: dict[str, object] = {"function": function}
    if index is not None:
        call["index"] = index
    if call_id:
        call["id"] = call_id
    return delta(tool_calls=[call])


def usage(sent: int, received: int) -> bytes:
    """Write the event with the token counts, which has no choices."""
    counts = {"prompt_tokens": sent, "completion_tokens": received}
    return event(choices=[], usage=counts)


def spoken(text: str, finish_reason: str = "stop") -> list[Step]:
    """Write a whole stream that says a text in pieces of three characters."""
    pieces = [delta(content=text[at : at + 3]) for at in range(0, len(text), 3)]
    return [delta(role="assistant"), *pieces, delta(finish_reason), usage(7, 5), END]
