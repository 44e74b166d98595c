"""Matrix as a place where people write: several agents' accounts on one homeserver.

Each account listens by itself (`listeners`), so that each is supervised by itself; a
message that several of them hear is handed in by one. What an agent says goes out by
its own account.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import trio

from actors.deliveries import Abilities
from actors.delivering import spoken
from actors.errors import DeliveryBusyError
from connectors.chat.faults import translated
from connectors.chat.limits import takes_files
from connectors.chat.matrix import content
from connectors.chat.matrix.account import MatrixAccount
from connectors.chat.matrix.figures import MatrixFigures
from connectors.chat.matrix.homeserver import Homeserver
from connectors.chat.matrix.invites import Policy
from connectors.chat.matrix.presence import MatrixPresence, send
from connectors.chat.matrix.quotes import Quotes
from connectors.chat.matrix.rooms import Rooms
from connectors.chat.matrix.shared import Shared
from connectors.chat.matrix.speaking import Speakers, prefixed
from connectors.chat.matrix.syncing import Syncing
from connectors.chat.matrix.typist import TYPING_FOR, Typist
from connectors.chat.matrix.uploads import Uploads
from connectors.chat.seen import Seen
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import httpx

    from actors.deliveries import Delivery, Draft, Typing
    from actors.transport import Ingress, Listening
    from connectors.blobs import BlobFolder
    from connectors.chat.bookmarks import Bookmarks
    from connectors.chat.matrix.figures import MatrixCounters
    from connectors.chat.matrix.room import Room
    from connectors.matrix_config import MatrixConfig
    from runtime.clock import Clock
    from runtime.ids import IdSource

LOG = EventLog("matrix")


@dataclass(frozen=True)
class Surroundings:
    """What the transport is given by the company."""

    clock: Clock
    ids: IdSource
    counters: MatrixCounters
    bookmarks: Bookmarks
    owners: Iterable[str] = ()
    """Each as `connector/sender id`."""

    network: httpx.AsyncBaseTransport | None = None
    """What carries the requests; None is the network."""

    blobs: BlobFolder | None = None
    """Has the bytes of files that agents send."""


class MatrixTransport:
    """The accounts on one homeserver; see the port.

    Args:
        name: of the connector, as in the settings.
        config: the homeserver and the accounts.
        given: what the company gives.
    """

    def __init__(self, name: str, config: MatrixConfig, given: Surroundings) -> None:
        homeserver = Homeserver(config.homeserver, given.network)
        self._accounts = {
            agent: MatrixAccount(
                agent, account, homeserver, name, config.request_timeout
            )
            for agent, account in config.accounts.items()
        }
        users = {each.user: agent for agent, each in self._accounts.items()}
        mine = f"{name}/"
        owners = frozenset(
            each.removeprefix(mine) for each in given.owners if each.startswith(mine)
        )
        self._shared = Shared(
            connector=name,
            config=config,
            users=users,
            homeserver=homeserver,
            policy=Policy(config.invites, owners, config.invite_from),
            rooms=Rooms(),
            seen=Seen(),
            quotes=Quotes(users),
            bookmarks=given.bookmarks,
            figures=MatrixFigures(given.counters, name),
            clock=given.clock,
            ids=given.ids,
        )
        self._typists = {
            agent: Typist(account) for agent, account in self._accounts.items()
        }
        self._speakers = Speakers(self._accounts, self._shared.rooms)
        self._presence = MatrixPresence(self._speakers)
        self._uploads = Uploads(given.blobs)
        self._listeners = {
            agent: Syncing(account, self._typists[agent], self._shared)
            for agent, account in self._accounts.items()
        }

    @property
    def abilities(self) -> Abilities:
        """What it can do: the server knows our ids, so that nothing is seen twice."""
        config = self._shared.config
        return Abilities(
            is_idempotent=True,
            max_part_chars=content.MOST_CHARS,
            pace=config.pace,
            shows_typing=True,
            typing_for=TYPING_FOR,
            ends_typing=True,
            takes_back=True,
            draft_pace=config.draft_pace,
            files=takes_files("matrix"),
        )

    @property
    def presence(self) -> MatrixPresence:
        """How it edits and reacts."""
        return self._presence

    @property
    def listeners(self) -> Mapping[str, Listening]:
        """The accounts' listeners, by agent."""
        return self._listeners

    @property
    def trouble(self) -> str:
        """Why nobody is heard now; empty: one account at least hears its server."""
        troubles = {agent: each.trouble for agent, each in self._accounts.items()}
        if not all(troubles.values()):
            return ""
        return "; ".join(f"{agent}: {why}" for agent, why in troubles.items())

    async def listen(self, ingress: Ingress) -> None:
        """Follow all accounts until cancelled, or until none is let in."""
        async with trio.open_nursery() as nursery:
            for listener in self._listeners.values():
                nursery.start_soon(listener.listen, ingress)

    async def deliver(self, delivery: Delivery) -> str:
        """Say one message in its room; see the port."""
        room_id = delivery.address.chat
        account, room = await self._speakers.choose(delivery.agent, room_id)
        said = msgspec.structs.replace(
            delivery, text=prefixed(delivery.text, delivery.agent, account).rstrip()
        )
        is_reply = delivery.part == 0 and not room.is_direct(self._shared.users)
        meant = self._meant(delivery, room) if is_reply else ()
        with translated():
            if said.file is None:
                event = content.message(said, meant, is_reply=is_reply)
            else:
                address = await self._uploads.bring(said.file, account)
                event = content.file(said, said.file, address, meant, is_reply=is_reply)
            event_id = await send(
                account, room_id, "m.room.message", delivery.id, event
            )
        seen = spoken((said,))
        self._shared.quotes.learn(room_id, event_id, account.user, seen)
        return event_id

    def _meant(self, delivery: Delivery, room: Room) -> tuple[str, ...]:
        """Give who is called to an answer: whoever it answers, and nobody else."""
        room_id, quotes = delivery.address.chat, self._shared.quotes
        asker = quotes.sender_of(room_id, delivery.reply_to)
        is_wanted = asker not in self._shared.users and room.is_in(asker)
        return (asker,) if is_wanted and delivery.kind == "reply" else ()

    async def look_up(self, delivery: Delivery) -> str | None:
        """Refuse: nobody needs to ask; see the port.

        Raises:
            DeliveryBusyError: always; `abilities` says that it is not to be asked.
        """
        await trio.lowlevel.checkpoint()
        raise DeliveryBusyError(f"{delivery.id} can simply be said again")

    def show_draft(self, draft: Draft) -> None:
        """Do nothing: drafts are shown by edits; see `presence`."""

    def show_typing(self, typing: Typing) -> None:
        """Show in the room that an agent is writing, or no longer."""
        typist = self._typists.get(typing.agent)
        if typist is None:
            return  # nobody is seen to write for an agent without an account
        if typing.is_over:
            typist.stop(typing.address.chat)
        else:
            typist.show(typing.address.chat)

    async def settle(self, correlation_id: str, reason: str) -> None:
        """Do nothing: who waits for an answer was told by a message."""
        await trio.lowlevel.checkpoint()
        LOG.debug("settled", correlation_id=correlation_id, reason=reason)
