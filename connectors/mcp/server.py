"""The actor of one server of tools: what it offers, and whether it can be used."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, ClassVar

from actors.errors import ToolError
from connectors.mcp.listing import changed
from connectors.mcp.messages import (
    CallTool,
    CancelCall,
    ListTools,
    SessionEnded,
    SessionOpened,
    Shelf,
    State,
    ToolListing,
    ToolsListed,
)
from connectors.mcp.session import CallQueue, PendingCall
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.telemetry.logs import EventLog, Quoted

if TYPE_CHECKING:
    from connectors.mcp.messages import ServerTool
    from connectors.mcp.metrics import McpFigures
    from runtime.actor.reply import Reply

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
        self._known: OrderedDict[str, ServerTool] = OrderedDict()
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
            self._known.move_to_end(tool.name)
        while len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)

    def _enter(self, state: State, reason: str) -> None:
        self._state = state
        self._reason = reason
        self._figures.show(self._name, is_up=state == "open")
        if state != "starting":
            for reply in self._waiting:
                reply.offer(self._shelf())
            self._waiting.clear()
