"""Messages over HTTP: said, read, changed, sought and deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from connectors.web.eliza.asked import SearchAsked, WordsAsked
from connectors.web.eliza.desk import gone, ok
from connectors.web.eliza.errors import missing, wrong
from connectors.web.eliza.server_routes import API
from connectors.web.eliza.shapes import message_shown
from connectors.web.eliza.times import milliseconds

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from connectors.web.eliza.channels import Channels
    from connectors.web.eliza.desk import Call, Desk
    from connectors.web.eliza.forgetting import Forgetting
    from connectors.web.eliza.keys import Caller
    from connectors.web.eliza.shapes import Message
    from connectors.web.eliza.speech import Speech

MOST_MESSAGES = 500
"""Most messages that one request is given."""

MOST_SOUGHT = 5_000
"""Messages looked through for one search, the newest first."""

PAGE = 200

OLD_PLACES = ("channels", "central-channels")


class MessageRoutes:
    """What is asked about what was said.

    Args:
        channels: asked on the kernel's side only.
        speech: likewise.
        forgetting: likewise.
    """

    def __init__(
        self, channels: Channels, speech: Speech, forgetting: Forgetting
    ) -> None:
        self._channels = channels
        self._forgetting = forgetting
        self._history = speech.history
        self._speech = speech

    def routes(self, desk: Desk) -> list[BaseRoute]:
        """Give the routes, under each of their names."""
        one = f"{API}/messages/{{message}}"
        found: list[BaseRoute] = [
            desk.route("POST", f"{API}/messages/search", "read", self.search),
            desk.route("GET", one, "read", self.show),
            desk.route("PATCH", one, "write", self.change),
        ]
        for place in OLD_PLACES:
            said = f"{API}/{place}/{{channel}}/messages"
            found += [
                desk.route("GET", said, "read", self.page),
                desk.route("DELETE", said, "manage", self.clear),
                desk.route("DELETE", f"{said}/{{message}}", "write", self.forget),
            ]
        return found

    async def page(self, call: Call) -> Response:
        """Give messages of a channel, the newest first."""
        limit = call.number("limit", 50, 1, MOST_MESSAGES)
        before = milliseconds(call.query("before"), "before")
        after = milliseconds(call.query("after"), "after")

        async def read() -> tuple[Message, ...]:
            channel = self._channels.channel(call.caller, call.id("channel"))
            return await self._history.page(
                channel.id, before=before, after=after, limit=limit
            )

        found = await call.ask(read)
        return ok({"messages": [message_shown(each) for each in found]})

    async def show(self, call: Call) -> Response:
        """Give one message."""
        found = await call.ask(self._own, call.caller, call.id("message"))
        return ok(message_shown(found))

    async def change(self, call: Call) -> Response:
        """Let a message read otherwise; only its author may."""
        asked = call.read(WordsAsked)
        found = await call.ask(self._own, call.caller, call.id("message"))
        call.author(found.author)
        worded = structs.replace(found, content=asked.content)
        changed = await call.ask(self._speech.change, worded)
        return ok(message_shown(changed))

    async def forget(self, call: Call) -> Response:
        """Delete a message; only its author may, and who may delete channels."""
        found = await call.ask(self._own, call.caller, call.id("message"))
        if found.channel != call.id("channel"):
            raise missing("message", found.id)
        if "manage" not in call.caller.scopes:
            call.author(found.author)
        await call.ask(self._forget, found)
        return gone()

    async def clear(self, call: Call) -> Response:
        """Delete all that was said in a channel."""
        await call.ask(self._clear, call.caller, call.id("channel"))
        return gone()

    async def search(self, call: Call) -> Response:
        """Find messages by their words, author and time, the newest first."""
        asked = call.read(SearchAsked)
        if not (asked.query or asked.author_id or asked.channel_id):
            raise wrong("query, authorId or channelId is needed", "query")
        found, is_whole = await call.ask(self._search, call.caller, asked)
        shown = [message_shown(each) for each in found]
        return ok({"messages": shown, "total": len(shown), "isWhole": is_whole})

    async def _forget(self, message: Message) -> None:
        """Delete a message; agents forget what they have taken note of it."""
        channel = self._channels.find(message.channel)
        if channel is not None:
            await self._forgetting.of_message(channel, message)
        await self._speech.forget(message)

    async def _clear(self, caller: Caller, channel_id: str) -> None:
        """Delete all messages of a channel; agents begin anew there."""
        channel = self._channels.channel(caller, channel_id)
        await self._forgetting.clear_for_all(channel)
        await self._speech.clear(caller, channel_id)

    async def _own(self, caller: Caller, message_id: str) -> Message:
        """Give a message that somebody may see.

        Raises:
            ApiError: 404, 403.
        """
        found = await self._history.get(message_id)
        if found is None:
            raise missing("message", message_id)
        self._channels.channel(caller, found.channel)
        return found

    async def _search(
        self, caller: Caller, asked: SearchAsked
    ) -> tuple[list[Message], bool]:
        """Look through channels; False: there were too many messages for one look."""
        every = self._channels.every()
        channels = [each for each in every if caller.may_enter(each)]
        if asked.channel_id:
            channels = [self._channels.channel(caller, asked.channel_id.lower())]
        before = milliseconds(str(asked.before or ""), "to")
        after = milliseconds(str(asked.after or ""), "from")
        found: list[Message] = []
        left = MOST_SOUGHT
        for channel in channels:
            at = before
            while left > 0:
                page = await self._history.page(
                    channel.id, before=at, after=after, limit=PAGE
                )
                left -= PAGE
                found += (each for each in page if fits(each, asked))
                if len(page) < PAGE:
                    break
                at = page[-1].at
        found.sort(key=lambda each: -each.at)
        return found[: asked.limit], left > 0


def fits(message: Message, asked: SearchAsked) -> bool:
    """Whether a message is one of those that are sought."""
    author = (asked.author_id or "").lower()
    is_theirs = not author or message.author == author
    return is_theirs and asked.query.casefold() in message.content.casefold()
