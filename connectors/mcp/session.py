"""The actor that speaks to one server of tools for as long as it answers.

The session is busy as long as its connection stands, so calls do not reach it as
messages: they wait in a bounded `CallQueue`, where they are found when nobody wants
them any more.
"""

from __future__ import annotations

import base64
import binascii
import math
from typing import TYPE_CHECKING, ClassVar, cast

import msgspec
import trio

from actors.errors import ToolError
from actors.messages.inbound import Image, ToolResult
from actors.rules.text.cleaning import UNSEEN, one_line
from connectors.fetch.media_types import PICTURES, media_type
from connectors.mcp.connection import Connect, ServerConnection, ServerEnd
from connectors.mcp.messages import (
    McpError,
    ServerAnswerError,
    ServerLostError,
    SessionEnded,
    SessionOpened,
    ToolsListed,
)
from runtime.actor.actor import Actor
from runtime.fairness import FairQueue

if TYPE_CHECKING:
    from connectors.config.mcp import McpServerConfig
    from connectors.mcp.messages import CallTool
    from connectors.mcp.metrics import McpFigures
    from runtime.actor.reply import Reply

MOST_PARTS = 100
MOST_IMAGES = 8
LARGEST_IMAGE = 5 * 1024 * 1024
"""Bytes; what the strictest provider takes."""

EMPTY = "(the tool gave nothing back)"

Table = dict[str, object]


def result_of(answer: object, most_chars: int) -> ToolResult:
    """Make a result of an answer.

    Args:
        answer: the `result` of a `tools/call`, as JSON.
        most_chars: longest text of the result.
    """
    if not isinstance(answer, dict):
        return ToolResult("the server's answer is no result", is_error=True)
    table = cast("Table", answer)
    content = table.get("content")
    parts = cast("list[object]", content) if isinstance(content, list) else []
    texts: list[str] = []
    images: list[Image] = []
    for part in parts[:MOST_PARTS]:
        text = shown(part, images)
        if text:
            texts.append(text)
    if len(parts) > MOST_PARTS:
        texts.append(f"[{len(parts) - MOST_PARTS} more parts were left out]")
    texts += further(table.get("structuredContent"), texts)
    text = bounded("\n\n".join(texts), most_chars)
    is_error = table.get("isError") is True
    return ToolResult(text or ("" if images else EMPTY), is_error, tuple(images))


def shown(part: object, images: list[Image]) -> str:
    """Write one part as text; a picture is added to `images` instead."""
    match part:
        case {"type": "text", "text": str(text)}:
            return UNSEEN.sub("", text.replace("\r\n", "\n"))
        case {"type": "image", "data": str(data)}:
            return picture(data, images)
        case {"type": "audio"}:
            return "[a sound was left out]"
        case {"type": "resource", "resource": dict()}:
            return embedded(cast("Table", cast("Table", part)["resource"]), images)
        case {"type": "resource_link", "uri": str(uri)}:
            name = cast("Table", part).get("name")
            words = one_line(name, 200) if isinstance(name, str) else ""
            return f"[resource {words} at {one_line(uri, 500)}]"
        case _:
            return "[a part of an unknown kind was left out]"


def embedded(resource: Table, images: list[Image]) -> str:
    """Write a resource that came with the answer."""
    uri = resource.get("uri")
    where = one_line(uri, 500) if isinstance(uri, str) else "an unknown place"
    match resource:
        case {"text": str(text)}:
            return f"[resource {where}]\n{UNSEEN.sub('', text)}"
        case {"blob": str(data)}:
            note = picture(data, images)
            return f"[resource {where}]{note and ' ' + note}"
        case _:
            return f"[resource {where} came without content]"


def picture(data: str, images: list[Image]) -> str:
    """Keep a picture, or say why not.

    Returns:
        Empty if it was kept.
    """
    if len(images) >= MOST_IMAGES:
        return f"[a picture was left out: more than {MOST_IMAGES}]"
    if len(data) > LARGEST_IMAGE * 4 // 3 + 4:
        return f"[content was left out: above {LARGEST_IMAGE} bytes]"
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return "[content was left out: it is no base64]"
    kind = media_type(content)
    if kind not in PICTURES:
        return f"[{len(content)} bytes that are no picture were left out]"
    images.append(Image(kind, content))
    return ""


def further(structured: object, texts: list[str]) -> list[str]:
    """Write what came as JSON, unless a text says the same already."""
    if structured is None or any(says(text, structured) for text in texts):
        return []
    try:
        return [UNSEEN.sub("", msgspec.json.encode(structured).decode())]
    except (ValueError, TypeError, RecursionError):
        return ["[content that is no JSON was left out]"]


def says(text: str, structured: object) -> bool:
    """Tell whether a text is this JSON, or all that is in it."""
    match structured:
        case dict() if [text.strip()] == [
            each.strip() if isinstance(each, str) else each
            for each in cast("Table", structured).values()
        ]:
            return True
        case _:
            pass
    try:
        return bool(msgspec.json.decode(text) == structured)
    except (ValueError, RecursionError):
        return False


def bounded(text: str, most: int) -> str:
    """Cut a text that is too long, and say so."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[cut: {len(text) - most} more characters]"


# Chosen: seconds between two looks at a server's list, however often it says that the
# list has changed.
RELIST_PACE = 1.0

# Chosen: seconds a server that did not answer a call may take to answer at all.
PATIENCE = 5.0


class Speak(msgspec.Struct, frozen=True):
    """A note to itself: begin."""


class McpSession(Actor):
    """One connection to a server of tools, from its start to its end.

    Takes: nothing; calls come by the link.
    Sends: `SessionOpened`, `ToolsListed` and `SessionEnded` to its server's actor.
    Keeps: the connection, and the calls that run on it.
    Fails: never by what a server does.
    Ends: when the server does not start, ends, hangs or sends what no server may; it
        is started again after a while, unless the settings say otherwise.
    """

    deadline: ClassVar[float | None] = None
    ends_by_interrupt: ClassVar[bool] = True

    def __init__(
        self,
        name: str,
        config: McpServerConfig,
        connect: Connect,
        link: CallQueue,
        figures: McpFigures,
    ) -> None:
        super().__init__()
        self._name = name
        self._config = config
        self._connect = connect
        self._link = link
        self._figures = figures

    def on_start(self) -> None:
        """Begin to speak."""
        self.note(Speak())

    async def on_receive(self, message: object) -> None:
        """Speak to the server until the end, which is told in any case."""
        if not isinstance(message, Speak):
            super().on_receive(message)
            return
        end = await self._speak()
        when = self._config.restart
        is_final = when == "never" or (when == "failed" and end.is_clean)
        self._tell(SessionEnded(end.reason, is_final, end.complaints.last))
        self._link.fail_all(f"the server {self._name} was lost ({end.reason})")
        if not is_final:
            # Why no failure: what a server does is nobody's mistake here. Ended for
            # good, the actor stays, with nothing to do.
            self.stop()

    def on_failure(self, *_args: object, **_kwargs: object) -> None:
        """Let nobody wait, whatever went wrong."""
        self._link.fail_all(f"the server {self._name} was lost")

    def on_stop(self) -> None:
        """Let nobody wait."""
        self._link.fail_all(f"the server {self._name} has been stopped")

    def _tell(self, message: object) -> None:
        self.tell(f"{self.actor_urn.rpartition('/')[0]}/server", message)

    async def _speak(self) -> ServerEnd:
        """Speak to the server; give why that ended, and whether as it should."""
        config, end = self._config, ServerEnd()
        with trio.CancelScope() as starting:
            starting.deadline = trio.current_time() + config.start_timeout
            try:
                async with self._connect() as connection:
                    await self._begin(connection, starting)
                    return connection.ending
            except McpError as error:
                end.come(str(error))
        end.come(f"it did not start within {config.start_timeout:g} seconds")
        return end

    async def _begin(
        self, connection: ServerConnection, starting: trio.CancelScope
    ) -> None:
        """Learn what there is; then serve until the connection's end."""
        if connection.ending.has_come:
            return
        try:
            listing = await connection.list_tools()
        except McpError as error:
            connection.ending.come(str(error))
            return
        starting.deadline = math.inf
        self._tell(SessionOpened(listing))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_listing, connection)
            nursery.start_soon(self._take_calls, connection, nursery)
            await connection.ending.wait()
            nursery.cancel_scope.cancel()

    async def _keep_listing(self, connection: ServerConnection) -> None:
        """Look at the list again whenever the server says that it has changed."""
        while True:
            await connection.wait_changed()
            await trio.sleep(RELIST_PACE)
            with trio.move_on_after(self._config.start_timeout) as waiting:
                try:
                    self._tell(ToolsListed(await connection.list_tools()))
                except McpError as error:
                    connection.ending.come(str(error))
            if waiting.cancelled_caught:
                connection.ending.come("it did not list its tools in time")

    async def _take_calls(
        self, connection: ServerConnection, nursery: trio.Nursery
    ) -> None:
        while True:
            pending = await self._link.take()
            nursery.start_soon(self._call, connection, pending)

    async def _call(self, connection: ServerConnection, pending: PendingCall) -> None:
        """Carry one call out, within its time."""
        pending.scope.deadline = trio.current_time() + self._config.call_timeout
        is_sound = True
        with pending.scope:
            is_sound = await self._answer(connection, pending)
        if pending.scope.cancelled_caught and not pending.reply.is_set:
            # Nobody hears this of a call that was given up: its asker is gone.
            late = trio.current_time() >= pending.scope.deadline
            is_sound = not late
            self._figures.count(self._name, "call_timeout", int(late))
            pending.reply.offer_error(ToolError(self._too_late()))
        # Why not in a `finally`: who was cut off by the connection's end is told why.
        self._link.done(pending)
        if not is_sound:
            await self._look_whether_it_lives(connection)

    async def _answer(self, connection: ServerConnection, pending: PendingCall) -> bool:
        """Ask the server, and pass its answer on; False: it may be broken."""
        call = pending.call
        arguments = cast("dict[str, object]", msgspec.json.decode(call.arguments))
        try:
            answer = await connection.call(call.name, arguments)
        except ServerAnswerError as error:
            doubt = "; nobody knows whether it was done" if error.in_doubt else ""
            pending.reply.offer_error(ToolError(f"{error}{doubt}"))
            return not error.in_doubt
        except ServerLostError as error:
            connection.ending.come(str(error))
            await trio.sleep_forever()  # until all who wait are told why
        result = result_of(answer, self._config.max_result_chars)
        pending.reply.offer(result)
        return True

    async def _look_whether_it_lives(self, connection: ServerConnection) -> None:
        """End the connection to a server that does not answer at all."""
        with trio.move_on_after(PATIENCE) as waiting:
            try:
                self._tell(ToolsListed(await connection.list_tools()))
            except McpError as error:
                connection.ending.come(str(error))
        if waiting.cancelled_caught:
            connection.ending.come("it does not answer any more")

    def _too_late(self) -> str:
        return (
            f"the server {self._name} did not answer within"
            f" {self._config.call_timeout:g} seconds; nobody knows whether it was done"
        )


class PendingCall:
    """One call, and who waits for its result."""

    __slots__ = ("call", "reply", "scope")

    def __init__(self, call: CallTool, reply: Reply) -> None:
        self.call = call
        self.reply = reply
        self.scope = trio.CancelScope()


LEAST_WAITING = 3
"""Calls that may wait for a server that takes one at a time: of these four places one
person has three, so that what an agent calls side by side is not refused."""


class CallQueue(FairQueue[PendingCall]):
    """Calls that wait or run; the people for whom they run take turns.

    Args:
        most: how many may run at once; as many more may wait, `LEAST_WAITING` at least.
    """

    def __init__(self, most: int) -> None:
        waiting = max(most, LEAST_WAITING)
        super().__init__(most, waiting, lambda pending: pending.call.owner)

    def submit(self, pending: PendingCall) -> bool:
        """Have a call carried out; False if too many wait."""
        may = self.may_add(pending.call.owner)
        if may:
            self.add(pending)
        return may

    def cancel(self, number: int) -> None:
        """Give a call up, if it has not ended."""
        for pending in (*self.running, *self.waiting):
            if pending.call.number == number:
                self.withdraw(pending)
                pending.scope.cancel()

    def fail_all(self, reason: str) -> None:
        """Tell all who wait that there is nobody left to answer."""
        for pending in self.abandon():
            text = f"{reason}, and nobody knows whether the call was carried out"
            pending.reply.offer_error(ToolError(text))
        for pending in self.waiting:
            self.withdraw(pending)
            pending.reply.offer_error(ToolError(f"{reason}; the call was not begun"))
