"""The transport port: an account on a chat platform, and the ingress for its messages.

Its contract suite is `tests/contracts/test_transport.py`; an implementation translates
its library's errors into those of `actors/errors.py`.

It also defines what the domain knows of a connector account: abilities and policies.

What transports and `actors/inbound/connector.py` tell each other about what comes in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from actors.messages.deliveries import (
    Abilities,
    Delivery,
    Draft,
    Edit,
    Reaction,
    Typing,
)
from actors.messages.inbound import Inbound
from actors.messages.state import RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from actors.outbound.retry import OnUnknown
    from actors.people.access import AccessPolicy


class Ingress(Protocol):
    """Accepts people's messages from a transport; see `actors/inbound/connector.py`."""

    async def is_admitted(self, inbound: Inbound) -> bool:
        """Return whether the sender of a message may write there. Stores nothing.

        For transports that fetch files before `accept`, so that nothing is fetched for
        strangers. Messages of strangers are passed to `accept` all the same: it refuses
        them or starts their pairing. Counts nothing.

        Args:
            inbound: the message as far as it is known; its text does not matter.

        Raises:
            OverloadedError: cannot be decided now; try again.
            StoppingError: the runtime is about to end.
        """
        ...

    async def accept(self, inbound: Inbound) -> bool:
        """Store a message; acknowledge it to the platform only after this returns.

        Returns:
            False if nothing new was stored, because this (connector, platform_id) was
            accepted before or the sender was refused. The platform may be acknowledged
            in both cases.

        Raises:
            OverloadedError: not stored for certain; tell the sender to try again. A
                repeat under the same `platform_id` counts once.
            StoppingError: nothing was stored; the runtime is stopping.
            MessageRefusedError: nothing was stored, and trying again cannot help. Of
                these, SenderRefusedError only where `abilities.counts_answers`.
            runtime.errors.StoreUnavailableError: nothing was stored.
        """
        ...

    async def earlier(self, connector: str, platform_id: str) -> Earlier | None:
        """Return what became of a message that was accepted before.

        Returns:
            None if the message is unknown or forgotten.

        Raises:
            runtime.errors.StoreError: the store cannot be read now.
        """
        ...

    async def withdraw(self, connector: str, platform_id: str) -> None:
        """Stop the work on a message that was deleted on its platform.

        Like a `/stop` for this message alone, and for what was handed on because of it.
        One that is unknown, or over, is no error.

        Raises:
            runtime.errors.StoreError: the store cannot be read now.
        """
        ...

    def refuse(self, attempt: RefusedAttempt) -> None:
        """Record that somebody was refused; never waits, never fails."""
        ...


class Presence(Protocol):
    """Edits and reactions, on platforms that have them.

    Passes `tests/contracts/test_presence.py`.
    """

    async def edit(self, edit: Edit) -> None:
        """Edit a message; called in order and one at a time for each chat.

        Raises:
            DeliveryBusyError: try again later.
            DeliveryRefusedError: never try again: the message is gone or too old.
            DeliveryUnknownError: the outcome is unknown.
        """
        ...

    async def react(self, reaction: Reaction) -> None:
        """Add a reaction to a message; a reaction that exists already is no error.

        Raises:
            DeliveryBusyError: try again later.
            DeliveryRefusedError: never try again.
        """
        ...


class Listening(Protocol):
    """A listener that receives messages; each one is supervised by itself."""

    async def listen(self, ingress: Ingress) -> None:
        """Receive messages until cancelled or until the platform ends for good.

        Any exception restarts the listener under its supervisor.
        """
        ...


class Transport(Listening, Protocol):
    """One account on a chat platform, terminal or HTTP listener.

    Implemented by `connectors/chat/terminal/transport.py`,
    `connectors/chat/terminal/playback.py`, `connectors/web/openai/transport.py`,
    `connectors/web/eliza/` and each `connectors/chat/<platform>/transport.py`; all pass
    `tests/contracts/test_transport.py`.
    """

    @property
    def abilities(self) -> Abilities:
        """What it supports; constant for its life."""
        ...

    @property
    def presence(self) -> Presence | None:
        """Edits and reactions; None if it has none. Constant for its life."""
        ...

    async def deliver(self, delivery: Delivery) -> str:
        """Send one message; called in order and one at a time for each chat.

        Returns:
            The platform's id of the message: the receipt.

        Raises:
            DeliveryBusyError: try again later.
            DeliveryRefusedError: never try again.
            DeliveryUnknownError: the outcome is unknown.
        """
        ...

    async def look_up(self, delivery: Delivery) -> str | None:
        """Find out whether a delivery has arrived; called only if `can_look_up`.

        Returns:
            The receipt, or None if the delivery has not arrived.

        Raises:
            DeliveryBusyError: try again later.
        """
        ...

    def show_draft(self, draft: Draft) -> None:
        """Show a piece of a streamed answer; may do nothing.

        Never waits. A transport that edits a message to show drafts keeps the newest
        text and paces itself.
        """
        ...

    def show_typing(self, typing: Typing) -> None:
        """Show a typing indicator; called only if `shows_typing`.

        Never waits.
        """
        ...

    async def settle(self, inbound: Inbound, reason: str) -> None:
        """Take notice that no (further) answer to a message will come, and why.

        A process before this one may have accepted it.

        Reasons: `replied`, `dropped:<why>`, `cancelled`, `dead`.
        """
        ...


@runtime_checkable
class MayBeShutOut(Protocol):
    """A transport that knows whether its platform lets it in."""

    @property
    def trouble(self) -> str:
        """Why none of its accounts is let in, or hears anything; empty: one does."""
        ...


@runtime_checkable
class ManyAccounts(MayBeShutOut, Protocol):
    """A transport with several accounts, each with a listener of its own.

    It is one transport, because a room that several accounts are in is one chat. The
    first account that hears a message there passes it on, once.
    """

    @property
    def listeners(self) -> Mapping[str, Listening]:
        """Listeners by the name of their agent; constant for its life.

        Each runs under a supervisor of its own. `Transport.listen` is not used.
        """
        ...


@dataclass(frozen=True)
class Account:
    """One account on a platform."""

    abilities: Abilities = field(default_factory=Abilities)
    """What its transport supports."""

    retries: RetryPolicy = field(default_factory=RetryPolicy)
    """Retries of turns for messages from this account."""

    on_unknown: OnUnknown = "resend"
    """What to do with a delivery that may have been sent before a crash."""

    policy: AccessPolicy | None = None
    """Who may write; None: the connector decides by itself."""

    has_presence: bool = False
    """Whether it supports edits and reactions."""


class CheckSender(msgspec.Struct, frozen=True):
    """Ask a connector: may the sender of this message write there? Stores nothing."""

    inbound: Inbound


class RefusedAttempt(msgspec.Struct, frozen=True):
    """A sender who was refused."""

    reason: str
    """Reason from a fixed set: `bad_key`, `unknown_sender`, …"""

    sender_id: str = ""
    """The sender as reported by the platform: an account or an address."""

    chat: str = ""


class Earlier(msgspec.Struct, frozen=True):
    """The outcome of a message that was accepted before."""

    inbound: Inbound
    outcome: str
    """Empty until it is settled; then as in `Transport.settle`, such as
    `replied:ok`.
    """

    deliveries: tuple[Delivery, ...]
    """All answers to it so far, of all agents, in order, without drafts."""

    ended: frozenset[str] = frozenset()
    """Ids of those that the platform has, or will never have."""

    @property
    def is_unanswered(self) -> bool:
        """Whether it ended without an answer of its own: it was stopped, for example.

        Asides, and the answers of others, may have come.
        """
        return bool(self.outcome) and not any(x.is_root for x in self.deliveries)

    @property
    def current(self) -> tuple[Delivery, ...]:
        """Leave out apologies of attempts that an operator repeated since.

        An apology settles its message. So as long as the message is not settled, all
        apologies belong to earlier attempts; once it is settled, all but the last
        delivery.
        """
        roots = [each for each in self.deliveries if each.is_root]
        last = roots[-1:] if self.outcome else []
        return tuple(
            each
            for each in self.deliveries
            if not (each.is_root and each.trouble) or each in last
        )
