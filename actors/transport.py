"""The port of chats: an account on a platform, and where it hands in what people wrote.

Its contract suite is `tests/contracts/test_transport.py`; an implementation translates
its library's errors into those of `actors/errors.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from actors.deliveries import Abilities, Delivery, Draft, Edit, Reaction, Typing
    from actors.ingress import Earlier, RefusedAttempt
    from actors.messages import Inbound


class Ingress(Protocol):
    """Where a transport hands in what people wrote; `actors/connector.py` has it."""

    async def is_admitted(self, inbound: Inbound) -> bool:
        """Tell whether whoever wrote a message may write there; nothing is kept.

        For who has more to fetch before `accept`, as files: nothing is fetched for a
        stranger. Whoever is not admitted is handed in all the same, as they are;
        refusing them, and letting them knock, is `accept`'s. Nothing is counted.

        Args:
            inbound: the message, as far as it is known; its words do not count.

        Raises:
            OverloadedError: not known now; try again.
            StoppingError: the runtime is about to end.
        """
        ...

    async def accept(self, inbound: Inbound) -> bool:
        """Store a message; acknowledge it to the platform only after this returns.

        Returns:
            False if nothing new was stored: this (connector, platform_id) was
            accepted before, or whoever wrote it is not let in. The platform may be
            acknowledged all the same.

        Raises:
            OverloadedError: not confirmed; tell the sender to try again. Handed in
                again under the same `platform_id` it counts once.
            StoppingError: nothing was stored; the runtime is about to end.
            MessageRefusedError: nothing was stored, and trying again cannot help. Of
                these, SenderRefusedError only where `abilities.counts_answers`.
            runtime.errors.StoreUnavailableError: nothing was stored.
        """
        ...

    async def earlier(self, connector: str, platform_id: str) -> Earlier | None:
        """Tell what became of a message that `accept` knew before.

        Returns:
            None if it is not known (any more).

        Raises:
            runtime.errors.StoreError: it cannot be read now.
        """
        ...

    def refuse(self, attempt: RefusedAttempt) -> None:
        """Have it recorded that somebody was not let in; never waits, never fails."""
        ...


class Presence(Protocol):
    """What some platforms can show beside messages (F227 to F229).

    Passes `tests/contracts/test_presence.py`.
    """

    async def edit(self, edit: Edit) -> None:
        """Let a message read otherwise; called for one chat in order, one at a time.

        Raises:
            DeliveryBusyError: try again later.
            DeliveryRefusedError: never try again (it is gone, or too old).
            DeliveryUnknownError: asked, and nobody knows whether it was done.
        """
        ...

    async def react(self, reaction: Reaction) -> None:
        """Put a sign at a message; one that is there already is no error.

        Raises:
            DeliveryBusyError: try again later.
            DeliveryRefusedError: never try again.
        """
        ...


class Listening(Protocol):
    """Whatever hands in messages; each is supervised by itself."""

    async def listen(self, ingress: Ingress) -> None:
        """Hand in messages until cancelled or until the platform ends for good.

        Any exception restarts the listener under its supervisor.
        """
        ...


class Transport(Listening, Protocol):
    """One account on a chat platform, terminal or HTTP listener.

    Implemented by `connectors/chat/terminal.py`, `connectors/chat/playing.py`,
    `connectors/web/openai_api.py`, `connectors/web/eliza/` and each
    `connectors/chat/<platform>/transport.py`; all pass
    `tests/contracts/test_transport.py`.
    """

    @property
    def abilities(self) -> Abilities:
        """What it can do about deliveries; constant for its life."""
        ...

    @property
    def presence(self) -> Presence | None:
        """How it edits and reacts; None: it cannot. Constant for its life."""
        ...

    async def deliver(self, delivery: Delivery) -> str:
        """Say one message in its chat; called for one chat in order, one at a time.

        Returns:
            The platform's id of the message: the receipt.

        Raises:
            DeliveryBusyError: try again later.
            DeliveryRefusedError: never try again.
            DeliveryUnknownError: asked, and nobody knows whether it was said.
        """
        ...

    async def look_up(self, delivery: Delivery) -> str | None:
        """Find out whether a delivery was said; asked only of who `can_look_up`.

        Returns:
            Its receipt, or None if it was not said.

        Raises:
            DeliveryBusyError: try again later.
        """
        ...

    def show_draft(self, draft: Draft) -> None:
        """Show a piece of an answer that is still being written; may do nothing.

        Never waits, and need not show each piece by itself: a transport that shows
        drafts by editing a message keeps the newest and paces itself.
        """
        ...

    def show_typing(self, typing: Typing) -> None:
        """Show that an answer is being written; asked only of who `shows_typing`.

        Never waits.
        """
        ...

    async def settle(self, correlation_id: str, reason: str) -> None:
        """Learn that nothing (more) will be said about a message, and why.

        Reasons: `replied`, `dropped:<why>`, `cancelled`, `dead`.
        """
        ...


@runtime_checkable
class ManyAccounts(Protocol):
    """A transport with several accounts, each of which listens by itself.

    Why not several transports: a room that several of them are in is one chat, and a
    message there is handed in once, whoever hears it first.
    """

    @property
    def listeners(self) -> Mapping[str, Listening]:
        """What listens, by name (the agent's); constant for its life.

        Each runs under a supervisor of its own, instead of `Transport.listen`.
        """
        ...

    @property
    def trouble(self) -> str:
        """Why nobody is heard now; empty: one account at least hears its platform."""
        ...
