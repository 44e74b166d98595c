"""One server of tools, by two actors: what it offers, and the session with it.

The session is busy as long as its connection stands, so calls do not reach it as
messages: they wait in a bounded `CallQueue`, where they are found when nobody wants
them any more.

What a server lists comes from a program that may be wrong or hostile: names, words and
schemas are cleaned and bounded before a model sees them, and what cannot be used is
left out with a reason. The labels of metrics are bounded by the settings.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Literal, cast

import msgspec
import trio

from actors.errors import ToolError
from actors.messages.inbound import Image, ToolResult
from actors.rules.text.cleaning import UNSEEN, clean, one_line
from actors.rules.text.limits import RecentMap
from connectors.fetch.messages import PICTURES, media_type
from connectors.mcp.connection import (
    CallTool,
    CancelCall,
    Connect,
    ListTools,
    McpError,
    ServerAnswerError,
    ServerConnection,
    ServerEnd,
    ServerLostError,
    ServerTool,
    SessionEnded,
    SessionOpened,
    Shelf,
    State,
    ToolListing,
    ToolsListed,
)
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.fairness import FairQueue
from runtime.telemetry.logs import EventLog, Quoted

if TYPE_CHECKING:
    from connectors.config.mcp import McpServerConfig
    from runtime.actor.reply import Reply
    from runtime.telemetry.metrics import Metrics


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
        end.come(f"it did not start within {config.start_timeout:g} s")
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


Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
JsonTable = dict[str, Json]

MOST_TOOLS = 256
LONGEST_NAME = 256
LONGEST_DESCRIPTION = 2_000
LONGEST_WORDS = 1_000
"""Characters of a description inside a schema."""

LARGEST_SCHEMA = 32 * 1024
"""Bytes of a schema as it is sent to a model, with every request."""

DEEPEST = 24
MOST_SCHEMA_PARTS = 4_000

WORDS = frozenset({"title", "description", "$comment"})
SHARED = ("#/$defs/", "#/definitions/")
DROPPED = frozenset({"$defs", "definitions", "$schema", "$id", "$comment"})


class SchemaError(ValueError):
    """A schema cannot be shown to a model; the text says why."""


def listing_of(tools: Iterable[object]) -> ToolListing:
    """Take over what can be used of a server's list.

    Args:
        tools: what it listed; each should be a table with `name`, `inputSchema` and
            perhaps `description`.
    """
    fitting: dict[str, ServerTool] = {}
    left_out: list[str] = []
    for each in tools:
        name = name_of(each)
        shown = one_line(name, 80) or "a tool without a name"
        if not name or len(name) > LONGEST_NAME or one_line(name, 300) != name:
            left_out.append(f"{shown}: its name is none")
        elif name in fitting:
            left_out.append(f"{shown}: listed twice")
        elif len(fitting) >= MOST_TOOLS:
            left_out.append(f"{shown}: more than {MOST_TOOLS} tools")
        else:
            try:
                fitting[name] = tool_of(name, cast("JsonTable", each))
            except SchemaError as error:
                left_out.append(f"{shown}: {error}")
    return ToolListing(tuple(fitting.values()), tuple(left_out))


def name_of(tool: object) -> str:
    """Give the name of what should be a tool; empty if it has none."""
    name = cast("JsonTable", tool).get("name") if isinstance(tool, dict) else None
    return name if isinstance(name, str) else ""


def tool_of(name: str, tool: JsonTable) -> ServerTool:
    """Take over one tool.

    Raises:
        SchemaError: its schema is none for a model.
    """
    description = tool.get("description") or tool.get("title") or ""
    words = description if isinstance(description, str) else ""
    words = clean(words, LONGEST_DESCRIPTION) or name
    return ServerTool(name, words, schema_of(tool.get("inputSchema")))


def schema_of(schema: Json) -> bytes:
    """Write a tool's schema as providers take it: an object, without references.

    A reference inside the schema is replaced by what it means; any other, and one that
    leads to itself, by what allows anything: the server checks the arguments anyway.

    Raises:
        SchemaError: it describes no object, or is too large.
    """
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise SchemaError("its schema describes no object")
    parts = SchemaWalk(schema)
    whole = parts.plain(schema, ())
    if not isinstance(whole, dict):
        raise SchemaError("its schema describes no object")
    whole["type"] = "object"
    if not isinstance(whole.setdefault("properties", {}), dict):
        raise SchemaError("its schema has no table of properties")
    try:
        written = msgspec.json.encode(whole)
    except (ValueError, TypeError, RecursionError) as error:
        raise SchemaError("its schema cannot be written as JSON") from error
    if len(written) > LARGEST_SCHEMA:
        raise SchemaError(f"its schema is above {LARGEST_SCHEMA} bytes")
    return written


class SchemaWalk:
    """One walk over a schema.

    Args:
        root: the whole schema, in which references lead to others of its parts.
    """

    def __init__(self, root: JsonTable) -> None:
        self._root = root
        self._left = MOST_SCHEMA_PARTS

    def plain(self, part: Json, within: tuple[str, ...], depth: int = 0) -> Json:
        """Copy a part: references replaced, words cleaned.

        Args:
            within: the references that led here.
            depth: how far below the root.

        Raises:
            SchemaError: it is too large, or nested too deeply.
        """
        self._left -= 1
        if self._left < 0 or depth > DEEPEST:
            raise SchemaError("its schema is too large, or nested too deeply")
        if isinstance(part, list):
            return [self.plain(each, within, depth + 1) for each in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return self._meant(part, within, depth)
        return {
            key: self._value(key, each, within, depth)
            for key, each in part.items()
            if not (key in DROPPED and isinstance(each, (dict, str)))
        }

    def _value(
        self, key: str, value: Json, within: tuple[str, ...], depth: int
    ) -> Json:
        if key in WORDS and isinstance(value, str):
            return clean(value, LONGEST_WORDS)
        if key == "properties" and isinstance(value, dict):
            # Its keys are names: one may be called `description`, or `$ref`.
            return {
                name: self.plain(each, within, depth + 2)
                for name, each in value.items()
            }
        return self.plain(value, within, depth + 1)

    def _meant(self, part: JsonTable, within: tuple[str, ...], depth: int) -> Json:
        """Give what a reference means, with what stands beside it."""
        target = part["$ref"]
        beside = {key: each for key, each in part.items() if key != "$ref"}
        found: Json = {}
        inside: tuple[str, ...] = within
        if isinstance(target, str) and target not in within:
            found = self._look_up(target)
            inside = (*within, target)
        meant = found if isinstance(found, dict) else {}
        return self.plain({**meant, **beside}, inside, depth + 1)

    def _look_up(self, target: str) -> Json:
        for start in SHARED:
            shared = self._root.get(start.strip("#/"))
            if target.startswith(start) and isinstance(shared, dict):
                return shared.get(target.removeprefix(start), {})
        return {}


def changed(
    before: Iterable[ServerTool], now: Iterable[ServerTool]
) -> tuple[tuple[ServerTool, ServerTool], ...]:
    """Give each tool that is described otherwise than before, as it was and is."""
    known = {tool.name: tool for tool in before}
    pairs = [(known[tool.name], tool) for tool in now if tool.name in known]
    return tuple((old, new) for old, new in pairs if old != new)


Event = Literal[
    "opened",
    "lost",
    "garbage",
    "tool_left_out",
    "tool_changed",
    "call_timeout",
    "call_refused",
]
"""What happens to a server: its session stood, or ended; it sent what is no message;
one of its tools cannot be used, or is described otherwise than before; a call took too
long, or was refused because too many waited."""


class McpFigures:
    """The counters of all servers of tools."""

    def __init__(self, metrics: Metrics) -> None:
        self._events = metrics.counter(
            "callboard_mcp_events",
            "What happened to servers of tools, by server.",
            ("server", "event"),
        )
        self._up = metrics.gauge(
            "callboard_mcp_up", "1 while a server of tools can be used.", ("server",)
        )

    def count(self, server: str, event: Event, times: int = 1) -> None:
        """Count something that happened."""
        if times:
            self._events.add(times, server, event)

    def show(self, server: str, *, is_up: bool) -> None:
        """Show whether a server can be used."""
        self._up.set(float(is_up), server)


LOG = EventLog("mcp")

# Chosen: turns that wait for the first start at once; each asks once.
MOST_WAITING = 1_000

# Chosen: twice what one server may list.
MOST_KNOWN = 512


class McpServer(Actor):
    """One server of tools, over all its sessions.

    Takes: `ListTools` and `CallTool`, both asked; `CancelCall`; from its session
        `SessionOpened`, `ToolsListed`, `SessionEnded`.
    Sends: calls to its session, by the link that both hold.
    Keeps: the tools as last listed, also while the server is down.
    Fails: never by these messages; its session is started again after it.
    Ends: with the system, or when the skill that brought it is no longer used.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=10_000)

    def __init__(self, name: str, link: CallQueue, figures: McpFigures) -> None:
        super().__init__()
        self._name = name
        self._link = link
        self._figures = figures
        self._state: State = "starting"
        self._reason = "it is being started"
        self._said = ""
        self._listing = ToolListing()
        self._known: RecentMap[str, ServerTool] = RecentMap(MOST_KNOWN)
        self._waiting: list[Reply] = []

    def on_start(self) -> None:
        """Show that it cannot be used yet."""
        self._figures.show(self._name, is_up=False)

    def on_stop(self) -> None:
        """Let nobody wait."""
        self._enter("ended", "it has been stopped")
        self._link.fail_all(f"the server {self._name} has been stopped")

    def on_receive(self, message: object) -> object:
        """Answer what is asked; note what the session tells."""
        match message:
            case ListTools():
                return self._show()
            case CallTool():
                self._call(message)
            case CancelCall(number=number):
                self._link.cancel(number)
            case SessionOpened(listing=listing):
                self._figures.count(self._name, "opened")
                self._shelve(listing)
                self._enter("open", "")
            case ToolsListed(listing=listing):
                self._shelve(listing)
            case SessionEnded(reason=reason, is_final=is_final, said=said):
                self._figures.count(self._name, "lost")
                self._said = said
                LOG.warning(
                    "server of tools lost",
                    server=self._name,
                    why=reason,
                    said=Quoted(said),
                )
                again = "" if is_final else "; it is being started again"
                self._enter("ended" if is_final else "down", reason + again)
            case _:
                return super().on_receive(message)
        return None

    def _show(self) -> Shelf | None:
        reply = self.defer_reply() if self._state == "starting" else None
        if reply is None:
            return self._shelf()
        if len(self._waiting) < MOST_WAITING:
            self._waiting.append(reply)
        else:
            reply.offer(self._shelf())
        return None

    def _shelf(self) -> Shelf:
        return Shelf(self._state, self._listing, self._reason, self._said)

    def _call(self, call: CallTool) -> None:
        if self._state != "open":
            raise ToolError(f"the server {self._name} cannot be used: {self._reason}")
        reply = self.defer_reply()
        if reply is not None and not self._link.submit(PendingCall(call, reply)):
            self._figures.count(self._name, "call_refused")
            text = f"the server {self._name} has too much to do; try again later"
            reply.offer_error(ToolError(text))

    def _shelve(self, listing: ToolListing) -> None:
        """Take over a list of tools; say what is odd about it."""
        self._figures.count(self._name, "tool_left_out", len(listing.left_out))
        for reason in listing.left_out:
            LOG.warning("tool left out", server=self._name, why=reason)
        for before, now in changed(self._known.values(), listing.tools):
            # Why: a server that was harmless when somebody looked at it may tell a
            # model something else later.
            self._figures.count(self._name, "tool_changed")
            LOG.warning(
                "tool is described otherwise than before",
                server=self._name,
                tool=now.name,
                before=before.description,
                now=now.description,
            )
        self._listing = listing
        self._remember()

    def _remember(self) -> None:
        """Keep how tools were described, also of those that are gone for a while."""
        for tool in self._listing.tools:
            self._known[tool.name] = tool

    def _enter(self, state: State, reason: str) -> None:
        self._state = state
        self._reason = reason
        self._figures.show(self._name, is_up=state == "open")
        if state != "starting":
            for reply in self._waiting:
                reply.offer(self._shelf())
            self._waiting.clear()
