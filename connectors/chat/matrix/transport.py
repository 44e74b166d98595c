"""The transport of Matrix: several agents' accounts on one homeserver.

Each account has its own listener, so that each is supervised by itself. If several of
them hear a message, one submits it. An agent's answers go out by its own account.
"""

from __future__ import annotations

import msgspec

from actors.config.presence import PresenceConfig
from actors.journal.outbox import spoken
from actors.messages.deliveries import Abilities, Delivery, Typing
from connectors.chat.accounts import (
    AccountsTransport,
    Bookmarks,
    ConnectorShelf,
    PlatformMetrics,
    StoredBookmarks,
    prefixed,
    typeable,
)
from connectors.chat.inbound import SeenMessages
from connectors.chat.matrix import content
from connectors.chat.matrix.account import TYPING_FOR, Homeserver, MatrixAccount
from connectors.chat.matrix.inbound import MatrixUploads, Quotes
from connectors.chat.matrix.listener import InvitePolicy, MatrixListener
from connectors.chat.matrix.platform import PLATFORM, MatrixConfig
from connectors.chat.matrix.rooms import METRICS, MatrixRooms, MatrixShared, Room
from connectors.chat.matrix.senders import MatrixPresence, MatrixSenders, send
from connectors.chat.platforms import TransportParts
from connectors.chat.requests import translated
from runtime.telemetry.logs import EventLog

LOG = EventLog("matrix")

SYNCS = "matrix_sync"
"""Kind of the rows that keep how far each account has read."""


IS_SPARING = True
"""Homeservers allow few events."""


def sign_of(presence: PresenceConfig, connector: str) -> str:
    """Return the sign at messages that are worked on; empty: there is none."""
    is_shown = presence.shows_reactions(connector, is_sparing=IS_SPARING)
    return presence.received_sign if is_shown else ""


class MatrixTransport(AccountsTransport[MatrixAccount, MatrixListener]):
    """The accounts on one homeserver; see the port."""

    def __init__(
        self,
        name: str,
        config: MatrixConfig,
        parts: TransportParts,
        bookmarks: Bookmarks,
    ) -> None:
        homeserver = Homeserver(config.homeserver, parts.network)
        accounts = {
            agent: MatrixAccount(
                agent, account, homeserver, name, config.request_timeout
            )
            for agent, account in config.accounts.items()
        }
        users = {each.user: agent for agent, each in accounts.items()}
        mine = f"{name}/"
        owners = frozenset(
            each.removeprefix(mine) for each in parts.owners if each.startswith(mine)
        )
        self._shared = MatrixShared(
            connector=name,
            config=config,
            users=users,
            homeserver=homeserver,
            policy=InvitePolicy(
                config.invites,
                owners,
                config.invite_from,
                config.takes_strangers,
            ),
            rooms=MatrixRooms(),
            seen=SeenMessages(),
            quotes=Quotes(users),
            bookmarks=bookmarks,
            metrics=PlatformMetrics(parts.once(METRICS), name),
            clock=parts.clock,
            ids=parts.ids,
            received_sign=lambda: sign_of(parts.presence(), name),
        )
        self._senders = MatrixSenders(accounts, self._shared.rooms)
        self.presence = MatrixPresence(self._senders, parts.shown)
        self._uploads = MatrixUploads(parts.blobs)
        self._name = parts.shown
        listeners = {
            agent: MatrixListener(account, self._shared)
            for agent, account in accounts.items()
        }
        super().__init__(LOG, accounts, listeners)

    @property
    def abilities(self) -> Abilities:
        """The abilities: the server knows our ids, so that nothing is seen twice."""
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
            is_sparing=IS_SPARING,
            files=PLATFORM.takes_files,
        )

    async def deliver(self, delivery: Delivery) -> str:
        """Send one message to its room; see the port."""
        room_id = delivery.address.chat
        account, room = await self._senders.choose(delivery.account, room_id)
        words = prefixed(delivery, account.agent, self._name).rstrip()
        # Why behind a name: Element keeps what begins with a slash for itself.
        words = typeable(delivery, words, f"@{account.agent} /")
        said = msgspec.structs.replace(delivery, text=words)
        # In private it is seen anyway what an answer belongs to, but not which message
        # is not answered.
        is_seen = room.is_direct(self._shared.users) and not delivery.trouble
        is_reply = delivery.part == 0 and not is_seen
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
        """Return who is called to an answer: whoever it answers, and nobody else."""
        room_id, quotes = delivery.address.chat, self._shared.quotes
        asker = quotes.sender_of(room_id, delivery.reply_to)
        is_wanted = asker not in self._shared.users and room.is_in(asker)
        return (asker,) if is_wanted and delivery.kind == "reply" else ()

    def show_typing(self, typing: Typing) -> None:
        """Show in the room that an agent is writing, or no longer."""
        account = self.accounts.get(typing.agent)
        if account is not None:  # nobody is seen to write for an agent without one
            account.typing.show(typing.address.chat, is_over=typing.is_over)


def make_transport(
    name: str, config: MatrixConfig, parts: TransportParts
) -> MatrixTransport:
    """Make the transport of one homeserver's accounts."""
    shelf = ConnectorShelf(parts.store, parts.clock, name)
    return MatrixTransport(name, config, parts, StoredBookmarks(shelf, SYNCS))
