"""One reply that is being written: its messages in the chat, and what is durable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.deliveries import Delivery, Draft, Edit

if TYPE_CHECKING:
    from actors.draft_record import DraftRecord
    from actors.rules.drafts import Drafts, Ending, Message


class Reply:
    """One answer that is being written.

    Args:
        of: its first words, or what is to be said in its place.
        drafts: the messages it has in the chat.
        record: what is durable about them.
    """

    __slots__ = (
        "_of",
        "drafts",
        "intended",
        "is_placing",
        "record",
        "touched_at",
        "turn_id",
    )

    def __init__(
        self, of: Draft | Delivery, drafts: Drafts, record: DraftRecord
    ) -> None:
        self._of = of
        self.drafts = drafts
        self.record = record
        self.intended = -1
        """The message of which it is durable that it may stand there."""

        self.is_placing = False
        """Whether the platform was asked for a message, and nobody knows what came of
        it."""

        self.touched_at = 0.0
        """When it was heard of last, on trio's clock."""

        self.turn_id = ""

    @property
    def agent(self) -> str:
        """Who writes it."""
        return self._of.agent

    def take(self, draft: Draft) -> None:
        """Take the next words."""
        self._of, self.turn_id = draft, draft.turn_id
        self.drafts.take(draft.turn_id, draft.begins_at, draft.text)

    def first(self, number: int, agent: str, text: str) -> Delivery:
        """Give one of its messages as it is placed."""
        of = self._of
        return Delivery(
            id=f"{of.reply_id}:draft:{number}",
            correlation_id=of.correlation_id,
            address=of.address,
            agent=agent,
            text=text,
            reply_id=of.reply_id,
            reply_to=of.reply_to,
            is_draft=True,
            is_root=False,
            answers_left=1,  # it takes the place of none
        )

    def edit(self, message: Message, edit_id: str, text: str) -> Edit:
        """Let one of its messages read otherwise."""
        return Edit(
            id=edit_id,
            correlation_id=self._of.correlation_id,
            address=self._of.address,
            agent=message.agent,
            receipt=message.receipt,
            text=text,
        )


def is_beside(delivery: Delivery) -> bool:
    """Tell whether a delivery leaves drafts of its reply as they are.

    A file comes after all words; where there are none, it takes their place.
    """
    return delivery.is_aside or (delivery.file is not None and delivery.part > 0)


def ending_of(delivery: Delivery) -> Ending:
    """Tell what a delivery is to the draft before it."""
    if delivery.kind == "silence" or delivery.file is not None:
        return "nothing"
    if delivery.after_draft:
        return "after"
    return "instead" if delivery.trouble else "whole"
