"""What came from Slack for one app: channel by channel, in order.

A message is known by its channel and `ts`: what is sent again, what another of our apps
hears too, and the `app_mention` beside a `message`, are one and the same.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from connectors.chat.loose_json import Json, table, text
from connectors.chat.slack.events import (
    Skipped,
    Spoken,
    read,
    read_command,
    read_pressed,
)
from connectors.chat.slack.handing import Handing
from connectors.chat.slack.lanes import Lanes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from actors.transport import Ingress
    from connectors.chat.slack.account import SlackAccount
    from connectors.chat.slack.figures import Outcome
    from connectors.chat.slack.moments import Mark
    from connectors.chat.slack.shared import Shared

    Done = Callable[[], Awaitable[None]]

LEFT = frozenset({"member_left_channel", "channel_left", "group_left"})


class Arrivals:
    """Brings in what one app hears, for one time of listening.

    Args:
        account: which app.
        shared: what all apps share.
        mark: up to where all is in.
        ingress: where messages are handed in.
        nursery: where they are brought in.
    """

    def __init__(
        self,
        account: SlackAccount,
        shared: Shared,
        mark: Mark,
        ingress: Ingress,
        nursery: trio.Nursery,
    ) -> None:
        self._account = account
        self._shared = shared
        self._mark = mark
        self._ingress = ingress
        self._handing = Handing(account, shared)
        self._lanes = Lanes(nursery)
        self.moved = trio.Event()
        """Set when the mark has moved; whoever looks at it puts a new one."""

        self._left: set[str] = set()
        self.on_overflow: Callable[[], object] = bool
        """Called when something was left out: Slack brings it again, but not for
        long."""

    def take_event(self, event: Json, done: Done) -> bool:
        """Bring in an event.

        Args:
            event: what stands inside of what Slack sent.
            done: acknowledges it, as soon as nothing can be lost any more.

        Returns:
            False: too much waits. It is not acknowledged, so that it comes again.
        """
        self._note_place(event)
        return self._take(read(event, self._shared.ours()), done)

    def take_command(self, payload: Json, done: Done) -> bool:
        """Bring in a slash command; see `take_event`."""
        command = self._shared.config.slash_command
        return self._take(read_command(payload, self._account.agent, command), done)

    def take_press(self, payload: Json, done: Done) -> bool:
        """Bring in a button that was pressed; see `take_event`."""
        found = read_pressed(payload, self._account.agent)
        if found != Skipped("unknown_button"):
            return self._take(found, done)
        self.count("unknown_button")
        return self._lanes.put("", partial(self._decline, payload, done))

    async def _decline(self, payload: Json, done: Done) -> None:
        await done()
        channel, user = table(payload.get("channel")), table(payload.get("user"))
        await self._handing.decline(text(channel.get("id")), text(user.get("id")))

    def _take(self, found: Spoken | Skipped, done: Done) -> bool:
        if isinstance(found, Skipped):
            self.count(found.reason)
            return self._lanes.put("", done)
        if found.ts:
            self._mark.begin(found.ts)
        if self._lanes.put(found.channel, partial(self._bring_in, found, done)):
            self._left.discard(found.ts)
            return True
        self.count("overflow")
        if found.ts:
            self._left.add(found.ts)
        self.on_overflow()
        return False

    def left(self) -> frozenset[str]:
        """Give the moments of what was too much, and has not come again since."""
        return frozenset(self._left)

    def give_up(self, moments: Iterable[str]) -> int:
        """Wait no more for what has still not come again; count it."""
        gone = self._left.intersection(moments)
        self._left -= gone
        for ts in gone:
            self.count("gone")
            self._mark.end(ts)
        return len(gone)

    async def bring_in(self, event: Json) -> None:
        """Bring in an event of a channel's history."""
        found = read(event, self._shared.ours())
        if isinstance(found, Skipped):
            self.count(found.reason)
        else:
            self._mark.begin(found.ts)
            await self._bring_in(found, trio.lowlevel.checkpoint)

    async def _bring_in(self, spoken: Spoken, done: Done) -> None:
        seen = self._shared.seen
        self._shared.rooms.note(self._account.agent, spoken.channel)
        if await seen.claim(spoken.id):
            try:
                await self._handing.hand_in(spoken, self._ingress)
                seen.done(spoken.id)
            finally:
                seen.give_back(spoken.id)
        else:
            self.count("seen")
        if spoken.ts:
            self._left.discard(spoken.ts)
            self._mark.end(spoken.ts)
            self.moved.set()
        await done()

    def _note_place(self, event: Json) -> None:
        """Learn where the app is, and where it is not any more."""
        kind, channel = text(event.get("type")), text(event.get("channel"))
        agent, user = self._account.agent, text(event.get("user"))
        if kind in LEFT and user in {self._account.user, ""}:
            self._shared.rooms.note_left(agent, channel)
        elif kind == "member_joined_channel" and user == self._account.user:
            self._shared.rooms.note(agent, channel)

    def count(self, outcome: Outcome) -> None:
        """Count what became of something."""
        self._shared.figures.event(self._account.agent, outcome)
