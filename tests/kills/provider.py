"""A model provider that sees exactly when it is asked, and can end the asker."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable

import msgspec
import trio

from tests.fakes.models.openai_server import END, call_delta, delta, usage
from tests.fakes.models.server import chunked
from tests.kills.points import TOOL_CALLS
from tests.kills.wire import read_message


class Line(msgspec.Struct):
    """One message of a request."""

    role: str
    content: str | None = None


class Asked(msgspec.Struct):
    """What the provider reads of a request."""

    messages: list[Line]


class Provider:
    """Answers as `script.toml` does, unless it is to end the asker instead."""

    def __init__(self) -> None:
        self.base_url = ""
        self._point = ""
        self._left = 0
        self._kill: Callable[[], object] = int

    def arm(self, point: str, number: int, kill: Callable[[], object]) -> None:
        """End the asker at its NUMBERth request of a kind; `""` disarms."""
        self._point, self._left, self._kill = point, number, kill

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one connection."""
        with contextlib.suppress(trio.BrokenResourceError):
            async with stream:
                while (message := await read_message(stream)) and message.is_whole:
                    asked = msgspec.json.decode(message.body, type=Asked)
                    if self._is_due(asked):
                        # The asker waits for us and can do nothing else meanwhile.
                        self._kill()
                        return
                    await stream.send_all(chunked(answer(asked.messages[-1])))

    def _is_due(self, asked: Asked) -> bool:
        if not self._point:
            return False
        has_tool_result = asked.messages[-1].role == "tool"
        if has_tool_result is (self._point == TOOL_CALLS):
            self._left -= 1
        return self._left == 0


def answer(last: Line) -> bytes:
    """Write the stream that answers a line."""
    words = last.content or ""
    if last.role == "tool":
        steps = [delta(content=words), delta("stop")]
    elif words.startswith("sum "):
        arguments = msgspec.json.encode({"expression": words[4:]}).decode()
        steps = [call_delta(0, "call1", "calculate", arguments), delta("tool_calls")]
    else:
        steps = [delta(content=f"you said {words}"), delta("stop")]
    return b"".join([delta(role="assistant"), *steps, usage(7, 5), END])


@contextlib.asynccontextmanager
async def open_provider() -> AsyncGenerator[Provider]:
    """Listen on loopback during the block."""
    provider = Provider()
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    provider.base_url = f"http://127.0.0.1:{port}/v1"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, provider.serve, listeners)
        yield provider
        nursery.cancel_scope.cancel()
