"""A message that is not settled yet, and what its turn is told of the past."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.messages import Inbound, Line
from actors.rules import merging, message_state
from actors.rules.busy_policies import Style

if TYPE_CHECKING:
    from collections.abc import Collection


class Held(msgspec.Struct, frozen=True):
    """A message that is not settled yet, and those that share its turn."""

    inbound: Inbound
    state: message_state.MessageState
    told: str = ""
    """What to answer when the conversation has ended, which is all that it wants;
    empty: it wants an answer of the agent."""

    flushes: bool = True
    """Whether the conversation is gone through before it ends."""

    also: tuple[Inbound, ...] = ()
    """Further messages of the same person that its turn answers, in order."""

    style: Style = "alone"
    """How their words become one question."""

    short: tuple[str, ...] = ()
    """Ids of those of which only one line is told."""

    is_recorded: bool = False
    """Whether it stands in the journal that they share a turn."""

    injected: tuple[Inbound, ...] = ()
    """Messages that were put into its running turn, in order."""

    @property
    def others(self) -> tuple[Inbound, ...]:
        """All messages that its turn answers, too."""
        return (*self.also, *self.injected)

    @property
    def asked(self) -> Inbound:
        """The message as its turn is asked: all of them as one."""
        if not self.also:
            return self.inbound
        each = (self.inbound, *self.also)
        texts = [
            merging.shortened(x.text) if x.id in self.short else x.text for x in each
        ]
        return msgspec.structs.replace(
            self.inbound,
            text=merging.merge(texts, self.style),
            attachments=tuple(file for x in each for file in x.attachments),
            quoted=next((x.quoted for x in each[::-1] if x.quoted is not None), None),
            wants_drafts=any(x.wants_drafts for x in each),
        )

    def without(self, gone: Collection[str]) -> Held:
        """Leave out messages that somebody else has settled."""
        return msgspec.structs.replace(
            self,
            also=tuple(x for x in self.also if x.id not in gone),
            injected=tuple(x for x in self.injected if x.id not in gone),
        )


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn is told of the past."""

    lines: tuple[Line, ...] = ()
    """The conversation so far."""

    earlier: int = 0
    """How many lines it had before these."""

    summaries: tuple[str, ...] = ()
    steps: str = ""
    """The journal stream of this message's rounds and tool calls."""

    answered: tuple[str, ...] = ()
    """Ids of the messages that the conversation has answered lately."""

    reported: int = 0
    """The last attempt whose rounds stand in the ledger already."""

    resume: str = ""
    """By which the model may go on where it left off."""

    is_steered: bool = False
    """Whether words that come meanwhile are put into the turn."""


NOTHING = Known()
