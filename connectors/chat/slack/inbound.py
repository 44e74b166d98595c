"""Brings in what one app hears: channel by channel, in order.

A message is known by its channel and `ts`: what is sent again, what another of our apps
hears too, and the `app_mention` beside a `message`, are one and the same. No file is
fetched for somebody who may not write: a stranger has us carry nothing.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import trio

from actors.messages.inbound import Address, Inbound, Quoted
from actors.rules.text.languages import code_of
from actors.rules.text.limits import RecentMap
from connectors.chat.inbound import (
    MOST_IN_ALL,
    Lanes,
    Submission,
    Trouble,
    fetch_files,
    shown_name,
)
from connectors.chat.markup.dialect import UNKNOWN
from connectors.chat.requests import Json, PlatformError, table, text
from connectors.chat.slack.events import (
    Mark,
    SlackMessage,
    SlackSkipped,
    is_channel,
    is_ts,
    message_id,
    named,
    plain,
    read,
    read_command,
    read_pressed,
)
from connectors.chat.slack.markup import mrkdwn, quiet
from connectors.chat.slack.senders import Outcome, SlackShared, fetch_file
from runtime.errors import StoreError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from actors.transport import Ingress
    from connectors.chat.slack.account import SlackAccount
    from runtime.clock import Clock

    Done = Callable[[], Awaitable[None]]

MOST_PEOPLE = 5_000
"""People who are remembered."""

KNOWN_FOR = 3_600.0
"""Seconds after which somebody is looked up anew."""

UNKNOWN_FOR = 60.0
"""Seconds after which it is tried again after trouble."""

WITHIN = 2.0
"""Seconds: a message is not held back for long because of a name."""


class SlackPerson(msgspec.Struct, frozen=True):
    """One member of the workspace."""

    name: str = ""
    """Empty: it is not known."""

    roles: tuple[str, ...] = ()
    is_bot: bool = False
    language: str = ""
    """In which Slack speaks to them, as a code; empty: it is not known."""


class SlackPeople:
    """People who were looked up recently."""

    def __init__(self, clock: Clock, most: int = MOST_PEOPLE) -> None:
        self._clock = clock
        self._known: RecentMap[str, tuple[float, SlackPerson]] = RecentMap(most)

    async def get(self, user: str, account: SlackAccount) -> SlackPerson:
        """Return a person; nobody in particular if Slack does not say."""
        known = self._known.get(user)
        now = self._clock.monotonic()
        if known is not None and now < known[0]:
            return known[1]
        person = await self._look_up(user, account)
        until = now + (KNOWN_FOR if person.name else UNKNOWN_FOR)
        if not person.name and known is not None:
            person = known[1]
        self._known[user] = until, person
        return person

    async def _look_up(self, user: str, account: SlackAccount) -> SlackPerson:
        found: Json = {}
        with trio.move_on_after(WITHIN):
            with suppress(PlatformError):
                asked = {"user": user, "include_locale": "true"}
                answer = await account.ask("users.info", asked)
                found = table(answer.get("user"))
        return read_person(found)


def read_person(said: Json) -> SlackPerson:
    """Read what Slack says of somebody."""
    profile = table(said.get("profile"))
    names = (
        profile.get("display_name"),
        profile.get("real_name"),
        said.get("real_name"),
        said.get("name"),
    )
    flags = {"owner": "is_owner", "admin": "is_admin", "guest": "is_restricted"}
    return SlackPerson(
        name=next((shown_name(text(each)) for each in names if text(each).strip()), ""),
        roles=tuple(role for role, flag in flags.items() if said.get(flag) is True),
        is_bot=said.get("is_bot") is True,
        language=code_of(text(said.get("locale"))),
    )


LOG = EventLog("slack")


class SlackSubmitter:
    """Submits the messages that one app hears."""

    def __init__(self, account: SlackAccount, shared: SlackShared) -> None:
        self._account = account
        self._shared = shared
        self._submission = Submission(LOG, self._count, self._tell)

    async def submit(self, spoken: SlackMessage, ingress: Ingress) -> None:
        """Submit a message, however long that takes."""
        if spoken.response_url:
            self._shared.response_urls[spoken.id] = spoken.response_url
        fill = partial(self._filled, spoken) if spoken.files else None
        await self._submission.submit(await self._bare(spoken), ingress, fill)

    def _count(self, outcome: Outcome) -> None:
        self._shared.metrics.event(self._account.agent, outcome)

    async def _tell(self, inbound: Inbound, words: str, _: Trouble) -> None:
        place = inbound.address
        said: dict[str, object] = {
            "channel": place.chat,
            "text": mrkdwn(words),
            **quiet(),
        }
        if is_ts(place.thread):
            said["thread_ts"] = place.thread
        try:
            await self._account.ask("chat.postMessage", said)
        except PlatformError as error:
            LOG.warning("notice not said", channel=place.chat, why=str(error))

    async def decline(self, channel: str, user: str) -> None:
        """Tell whoever pressed a button, and them alone, that it stands for nothing."""
        said = {"channel": channel, "user": user, "text": UNKNOWN}
        try:
            await self._account.ask("chat.postEphemeral", said)
        except PlatformError as error:
            LOG.warning("notice not said", channel=channel, why=str(error))

    async def _bare(self, spoken: SlackMessage) -> Inbound:
        """Return a message as it came, with nothing fetched but names."""
        shared, account = self._shared, self._account
        person = await shared.people.get(spoken.sender, account)
        name = spoken.sender_name if spoken.is_bot else ""
        name = name or person.name or spoken.sender_name or spoken.sender
        here = shared.rooms.present(spoken.channel)
        present = (account.agent,) if spoken.is_direct else here or (account.agent,)
        quoted = self._answered(spoken)
        return Inbound(
            id=shared.ids.new(),
            platform="slack",
            platform_id=spoken.id,
            address=Address(shared.connector, spoken.channel, self._thread(spoken)),
            sender_id=spoken.sender,
            sender_name=name,
            language=person.language,
            text=await self._worded(spoken, name),
            received_at=shared.clock.wall(),
            is_direct=spoken.is_direct,
            agent=account.agent if spoken.is_direct else "",
            reply_to=first_of(spoken) if quoted else "",
            quoted=quoted,
            mentions=tuple(each for each in spoken.mentions if each in present),
            present=present,
            roles=person.roles,
            is_bot=spoken.is_bot or person.is_bot,
            platform_fields=specifics(spoken, account, person),
        )

    def _answered(self, spoken: SlackMessage) -> Quoted | None:
        """Return the message of ours in whose thread this is; None: it is nobody's.

        Slack does not always say whose it is; what was said lately is known here.
        """
        agent = self._shared.ours().users.get(spoken.answers, "")
        said = self._shared.said.quote(first_of(spoken))
        return said or (Quoted(text="", agent=agent) if agent else None)

    def _thread(self, spoken: SlackMessage) -> str:
        """Say in which thread it is answered; empty: in the channel."""
        is_first = not (spoken.thread or spoken.is_direct or spoken.is_command)
        if is_first and self._shared.config.start_threads:
            return spoken.ts
        return spoken.thread

    async def _worded(self, spoken: SlackMessage, sender_name: str) -> str:
        """Return a message's words as they read on the screen."""
        ours, people = self._shared.ours().users, self._shared.people
        names = {
            user: ours.get(user) or (await people.get(user, self._account)).name
            for user in named(spoken.text)
        }
        words = plain(spoken.text, lambda user: names.get(user, "")).strip()
        return f"* {sender_name} {words}" if spoken.is_me else words

    async def _filled(self, spoken: SlackMessage, inbound: Inbound) -> Inbound:
        """Fetch the files that came with a message."""
        most = min(self._shared.config.max_media_bytes, MOST_IN_ALL)

        def note(why: str) -> None:
            self._count("media_left_out")
            LOG.warning("file not fetched", message=spoken.id, why=why)

        files, lines = await fetch_files(
            spoken.files, lambda file: fetch_file(file, self._account, most), note
        )
        text = "\n".join(filter(None, (inbound.text, *lines)))
        return msgspec.structs.replace(inbound, text=text, attachments=files)


def first_of(spoken: SlackMessage) -> str:
    """Return the id of the first message of the thread that this is in."""
    return message_id(spoken.channel, spoken.thread)


def specifics(
    spoken: SlackMessage, account: SlackAccount, person: SlackPerson
) -> dict[str, str]:
    """Return the fields that only Slack has."""
    found = {
        "team": account.team,
        "mentions_room": "true" if spoken.mentions_all else "",
        "is_command": "true" if spoken.is_command else "",
        "sender_roles": ",".join(person.roles),
    }
    return {name: value for name, value in found.items() if value}


LEFT = frozenset({"member_left_channel", "channel_left", "group_left"})


class SlackArrivals:
    """Takes the events of one app, from one start of listening to its end."""

    def __init__(
        self,
        account: SlackAccount,
        shared: SlackShared,
        mark: Mark,
        ingress: Ingress,
        nursery: trio.Nursery,
    ) -> None:
        self._account = account
        self._shared = shared
        self._mark = mark
        self._ingress = ingress
        self._submitter = SlackSubmitter(account, shared)
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
        found = read(event, self._shared.ours())
        if found == SlackSkipped("deleted"):
            self.count("deleted")
            # Behind the message itself, which may still be on its way.
            lane = text(event.get("channel"))
            return self._lanes.put_nowait(lane, partial(self._withdraw, event, done))
        return self._take(found, done)

    def take_command(self, payload: Json, done: Done) -> bool:
        """Bring in a slash command; see `take_event`."""
        command = self._shared.config.slash_command
        return self._take(read_command(payload, self._account.agent, command), done)

    def take_press(self, payload: Json, done: Done) -> bool:
        """Bring in a button that was pressed; see `take_event`."""
        found = read_pressed(payload, self._account.agent)
        if found != SlackSkipped("unknown_button"):
            return self._take(found, done)
        self.count("unknown_button")
        return self._lanes.put_nowait("", partial(self._decline, payload, done))

    async def _withdraw(self, event: Json, done: Done) -> None:
        """Have nobody work any longer on a message that was deleted."""
        channel, ts = text(event.get("channel")), text(event.get("deleted_ts"))
        if is_channel(channel) and is_ts(ts):
            try:
                await self._ingress.withdraw(
                    self._shared.connector, message_id(channel, ts)
                )
            except StoreError as error:
                LOG.warning("message not withdrawn", message=ts, why=str(error))
        await done()

    async def _decline(self, payload: Json, done: Done) -> None:
        await done()
        channel, user = table(payload.get("channel")), table(payload.get("user"))
        await self._submitter.decline(text(channel.get("id")), text(user.get("id")))

    def _take(self, found: SlackMessage | SlackSkipped, done: Done) -> bool:
        if isinstance(found, SlackSkipped):
            self.count(found.reason)
            return self._lanes.put_nowait("", done)
        if found.ts:
            self._mark.begin(found.ts)
        if self._lanes.put_nowait(found.channel, partial(self._bring_in, found, done)):
            self._left.discard(found.ts)
            return True
        self.count("overflow")
        if found.ts:
            self._left.add(found.ts)
        self.on_overflow()
        return False

    def left(self) -> frozenset[str]:
        """Return the moments of what was too much, and has not come again since."""
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
        if isinstance(found, SlackSkipped):
            self.count(found.reason)
        else:
            self._mark.begin(found.ts)
            await self._bring_in(found, trio.lowlevel.checkpoint)

    async def _bring_in(self, spoken: SlackMessage, done: Done) -> None:
        seen = self._shared.seen
        self._shared.rooms.note(self._account.agent, spoken.channel)
        if await seen.claim(spoken.id):
            try:
                await self._submitter.submit(spoken, self._ingress)
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
        self._shared.metrics.event(self._account.agent, outcome)
