"""Who speaks now, when several answers are written at the same time.

Drafts of several agents come mixed; people read one text. One answer at a time
is shown live, the others wait until it is complete. Pure: transports feed in
what comes and print the pieces that come out.

An *answer* is known by (correlation id, agent). Drafts are only a foretaste: the
delivery says what the answer is.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from actors.deliveries import Delivery, Draft

Key = tuple[str, str]
"""Correlation id and agent of one answer."""

MOST_DRAFTS = 64
"""Answers whose drafts are kept at once; the drafts of more are not shown."""

MOST_HELD = 64
"""Deliveries that wait for the speaker; one more and it is cut short."""


class Piece(msgspec.Struct, frozen=True):
    """The next words to show."""

    agent: str
    text: str
    begins: bool = False
    """True for the first piece of an answer."""

    ends: bool = False
    """True for the last piece of an answer; its text may be empty."""


class Drafted(msgspec.Struct):
    """The drafts of one answer as they have come so far."""

    turn_id: str
    text: str = ""


def missing_part(shown: str, text: str) -> str:
    """Tell what must still be shown so that `text` has been said.

    Args:
        shown: the drafts that people have seen; cannot be taken back.
        text: the whole answer.

    Returns:
        The rest of the text if the drafts are its beginning; nothing if they
        differ at the ends by blanks only; else the whole text after an empty line.
    """
    if text.startswith(shown):
        return text[len(shown) :]
    seen, whole = shown.strip(), text.strip()
    if whole.startswith(seen):
        rest = whole[len(seen) :]
        blanks = len(shown) - len(shown.rstrip())
        return rest.lstrip() if blanks else rest
    return "\n\n" + text


class Speakers:
    """Puts answers that are written at the same time into one readable order.

    Args:
        first: the answer whose turn it is at the start: drafts of others wait
            until it has been delivered or given up. None: whoever comes first.
    """

    def __init__(self, first: Key | None = None) -> None:
        self._speaker = first
        self._shown = ""
        self._has_begun = False
        self._drafts: OrderedDict[Key, Drafted] = OrderedDict()
        self._held: deque[Delivery] = deque()
        self._finished_turns: deque[str] = deque(maxlen=MOST_DRAFTS)

    @property
    def is_speaking(self) -> bool:
        """True while an answer has been begun and not completed."""
        return self._has_begun

    def draft(self, draft: Draft) -> list[Piece]:
        """Take a piece of an answer that is still being written."""
        key = (draft.correlation_id, draft.agent)
        if draft.turn_id in self._finished_turns:
            return []
        known = self._drafts.get(key)
        if known is None:
            if len(self._drafts) >= MOST_DRAFTS:
                return []
            known = self._drafts[key] = Drafted(draft.turn_id)
        if known.turn_id != draft.turn_id:
            # The turn was begun again (a restart): its drafts come again, too.
            known.turn_id, known.text = draft.turn_id, ""
        known.text += draft.text
        if self._speaker is None:
            self._speaker = key
        return self._show_draft(known) if key == self._speaker else []

    def deliver(self, delivery: Delivery) -> list[Piece]:
        """Take a whole answer; it is shown now, or after the one being shown."""
        key = (delivery.correlation_id, delivery.agent)
        if not self._has_begun or key == self._speaker:
            return [*self._say(delivery), *self._go_on()]
        self._held.append(delivery)
        return self._cut_short() if len(self._held) > MOST_HELD else []

    def give_up(self, correlation_id: str) -> list[Piece]:
        """Learn that no more answers with this correlation id will come."""
        for key in [key for key in self._drafts if key[0] == correlation_id]:
            if key != self._speaker:
                self._forget(key)
        if self._speaker is None or self._speaker[0] != correlation_id:
            return []
        return self._cut_short()

    def _show_draft(self, known: Drafted) -> list[Piece]:
        if self._speaker is None or not known.text.startswith(self._shown):
            # It repeats what was shown, or differs from it: the delivery decides.
            return []
        new = known.text[len(self._shown) :]
        if not new:
            return []
        piece = Piece(self._speaker[1], new, begins=not self._has_begun)
        self._shown, self._has_begun = known.text, True
        return [piece]

    def _say(self, delivery: Delivery) -> list[Piece]:
        key = (delivery.correlation_id, delivery.agent)
        is_going_on = self._has_begun and key == self._speaker
        shown = self._shown if is_going_on else ""
        piece = Piece(
            delivery.agent,
            missing_part(shown, delivery.text),
            begins=not is_going_on,
            ends=True,
        )
        self._forget(key)
        if key == self._speaker:
            self._speaker, self._shown, self._has_begun = None, "", False
        return [piece]

    def _cut_short(self) -> list[Piece]:
        speaker, had_begun = self._speaker, self._has_begun
        self._speaker, self._shown, self._has_begun = None, "", False
        if speaker is None:
            return self._go_on()
        self._forget(speaker)
        end = [Piece(speaker[1], "", ends=True)] if had_begun else []
        return [*end, *self._go_on()]

    def _go_on(self) -> list[Piece]:
        """Say what was held, then let the next one speak whose drafts wait."""
        pieces: list[Piece] = []
        while self._held:
            pieces += self._say(self._held.popleft())
        if self._speaker is None and self._drafts:
            self._speaker, known = next(iter(self._drafts.items()))
            pieces += self._show_draft(known)
        return pieces

    def _forget(self, key: Key) -> None:
        known = self._drafts.pop(key, None)
        if known is not None:
            self._finished_turns.append(known.turn_id)
