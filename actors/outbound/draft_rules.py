"""Decides how an answer that is being written is shown in a chat; pure.

`ReplyDrafts` is fed with words and with the results of platform calls, and returns the
next call. Only the newest words are shown; states in between are skipped. An answer too
long for one message goes on in a further one, cut as its parts will be
(`actors/journal/splitting.py`). When something else about the same question appears in
between (a tool call, a request for approval), the answer goes on below it. In the end
every message reads as the final answer does there.

`DraftSpeakers` is for transports that print one stream: drafts of several agents come
mixed, so one answer (correlation id and agent) is shown live and the others wait until
they are complete. Drafts are a preview; the delivery is the answer.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from itertools import pairwise
from typing import Literal

import msgspec

from actors.journal.splitting import closed, opened, split
from actors.messages.deliveries import Delivery, Draft
from actors.rules.text.measure import CHARACTERS, Measure, fence_of

Ending = Literal["whole", "instead", "after", "nothing"]
"""What a delivery is to the draft before it: the answer itself; sent instead of it;
sent after it; or nothing is sent at all."""

WITHDRAWN = "(withdrawn)"
"""Text of a message that should not be there, where messages cannot be deleted."""

# Chosen: longer than any answer may be by default.
MOST_CHARS = 200_000

TAIL = 40


class DraftMessage(msgspec.Struct):
    """One message of an answer in the chat."""

    number: int
    """Counts all draft messages of this answer, from 0."""

    agent: str
    """Under whose name it is shown."""

    receipt: str = ""
    """The platform's id of it; empty: it may exist and has to be found."""

    shown: str = ""
    """Its text, as far as is known."""


class DraftStart(msgspec.Struct, frozen=True):
    """Where the answer goes on in a further message, as something else was sent."""

    at: int
    tail: str = ""
    """The last of those characters; an answer with other words is not cut there."""


class PlaceDraft(msgspec.Struct, frozen=True):
    """Send a further message; it becomes number `index` of those in the chat."""

    index: int
    text: str


class EditDraft(msgspec.Struct, frozen=True):
    """Change a message's text; empty: delete it."""

    index: int
    text: str


class DraftFinish(msgspec.Struct, frozen=True):
    """How a delivery is sent where drafts of it are shown."""

    changes: tuple[EditDraft, ...]
    """Edits. All but the last belong to text before this delivery."""

    rest: str = ""
    """Text that is sent in a message of its own after the edits."""


class ReplyDrafts:
    """The draft messages of one answer.

    Args:
        most: most units of one message; 0: no limit.
        placeholder: text of the first message before there are words; empty: none.
        measure: counts the units of a text; by default every character counts 1.
    """

    __slots__ = (
        "_is_torn",
        "_measure",
        "_most",
        "_placeholder",
        "_starts",
        "_text",
        "_turn_id",
        "is_given_up",
        "messages",
        "next_number",
    )

    def __init__(
        self, most: int, placeholder: str = "", measure: Measure = CHARACTERS
    ) -> None:
        self._most = most
        self._measure = measure
        self._placeholder = placeholder
        self._turn_id = ""
        self._text = ""
        self._is_torn = False
        self._starts: list[DraftStart] = [DraftStart(0)]
        self.messages: list[DraftMessage] = []
        """The messages in the chat, in order."""

        self.next_number = 0
        self.is_given_up = False
        """Whether no message is changed any more before the end."""

    @property
    def starts(self) -> tuple[DraftStart, ...]:
        """Where further messages begin because something else was sent in between."""
        return tuple(self._starts[1:])

    def restore(
        self, messages: list[DraftMessage], starts: list[DraftStart], number: int
    ) -> None:
        """Go on with what an earlier process or incarnation left in the chat."""
        self.messages, self.next_number = messages, number
        self._starts = [DraftStart(0), *starts]

    def take(self, turn_id: str, begins_at: int, text: str) -> None:
        """Take the next words.

        Args:
            turn_id: another one than before begins the text anew.
            begins_at: how many characters the turn has written before these.
        """
        if turn_id != self._turn_id:
            self._turn_id, self._text, self._is_torn = turn_id, "", False
        known = len(self._text)
        if begins_at != known or known + len(text) > MOST_CHARS:
            self._is_torn = True  # words are missing, or too many: wait for the end
        if not self._is_torn:
            self._text += text

    def close(self) -> DraftStart | None:
        """Let the next words begin a further message, as something else is sent now.

        Returns:
            Where it begins; None: there were no words since the last time.
        """
        at, before = len(self._text.rstrip()), self._starts[-1].at
        if not self._text[before:at].strip():
            return None
        start = DraftStart(at, self._text[max(0, at - TAIL) : at])
        self._starts.append(start)
        return start

    def next(self, least: int = 0) -> PlaceDraft | EditDraft | None:
        """Give the next platform call; None: all words are shown.

        Args:
            least: characters of an answer before its first message is sent.
        """
        if self.is_given_up or self._is_torn:
            return None
        if not self.messages and len(self._text) < least:
            return None
        pieces = self._pieces(steady(self._text))
        wanted = [self._presentable(each) for each in pieces]
        for index, text in enumerate(wanted):
            if index == len(self.messages):
                is_first = index == 0 and self._placeholder
                return PlaceDraft(index, self._placeholder if is_first else text)
            shown = self.messages[index].shown
            # A turn that was begun again repeats its words: nothing is removed then.
            is_ahead = index == len(wanted) - 1 and shown.startswith(text)
            if shown != text and not is_ahead:
                return EditDraft(index, text)
        return None

    def finish(
        self, text: str, part: int, parts: int, ending: Ending
    ) -> DraftFinish | None:
        """Decide how a delivery is sent; None: as if there were no draft.

        Args:
            part: which part of its reply it is, from 0.
            parts: how many parts the reply has.
        """
        if not self.messages:
            return None
        last = len(self.messages) - 1
        match ending:
            case "nothing":
                return DraftFinish(())
            case "instead":
                return DraftFinish((EditDraft(last, text),))
            case "after":
                return self._after(last, text)
            case "whole":
                return self._whole(text, part, parts)

    def surplus(self, ending: Ending, parts: int, text: str) -> list[int]:
        """Give the messages that are no part of the final answer and should be deleted.

        Args:
            ending: what the last delivery was to the draft.
            parts: how many parts the reply has.
            text: what the last of them says.
        """
        if ending in {"instead", "after"}:
            return []
        used = 0 if ending == "nothing" else parts
        if parts == 1 and ending == "whole":
            used = len(self._pieces(text)) or 1
        return list(range(used, len(self.messages)))

    def end(self) -> None:
        """Forget the messages: they are no drafts any more."""
        self.messages, self._starts = [], [DraftStart(0)]

    def _after(self, last: int, text: str) -> DraftFinish | None:
        shown = self.messages[last].shown
        if not shown:
            return None
        whole = text if shown == self._placeholder else f"{closed(shown)}\n\n{text}"
        fits = not self._most or self._measure.size(whole) <= self._most
        return DraftFinish((EditDraft(last, whole),)) if fits else None

    def _whole(self, text: str, part: int, parts: int) -> DraftFinish | None:
        pieces = self._pieces(text) if parts == 1 else []
        if len(pieces) <= 1:
            is_there = part < len(self.messages)
            return DraftFinish((EditDraft(part, text),)) if is_there else None
        pairs = zip(range(len(self.messages)), pieces, strict=False)
        changes = tuple(EditDraft(index, piece) for index, piece in pairs)
        return DraftFinish(changes, "\n\n".join(pieces[len(changes) :]))

    def _pieces(self, text: str) -> list[str]:
        """Cut a text where it is too long, and where something else was sent."""
        cuts = [0]
        for start in self._starts[1:]:
            if start.at > len(text) or not text[: start.at].endswith(start.tail):
                break
            cuts.append(start.at)
        if len(cuts) == 1:
            return split(text, self._most, self._measure)
        ends = [*cuts, len(text)]
        return [
            piece
            for begin, end in pairwise(ends)
            for piece in split(text[begin:end].strip(), self._most, self._measure)
        ]

    def _presentable(self, text: str) -> str:
        """Give the part of a growing piece that may be shown."""
        ended = closed(text)
        if not self._most or self._measure.size(ended) <= self._most:
            return ended
        found = opened(text)
        end = f"\n{found.mark}" if found else ""
        room = self._most - self._measure.size(end)
        whole = closed(text[: self._measure.reach(text, room)])
        return whole[: self._measure.reach(whole, self._most)]


def steady(text: str) -> str:
    """Leave out an end that may still turn out to be something else: a fence."""
    head, _, last = text.rstrip().rpartition("\n")
    bare = last.strip()
    is_open = bool(bare) and (not bare.strip("`~") or bool(fence_of(last)))
    return head.rstrip() if is_open else text.rstrip()


Key = tuple[str, str]
"""Correlation id and agent of one answer."""

MOST_DRAFTS = 64
"""Most answers whose drafts are kept; drafts of further ones are not shown."""

MOST_HELD = 64
"""Most deliveries that wait for the speaker; one more ends its draft."""


class DraftPiece(msgspec.Struct, frozen=True):
    """The next words to show."""

    agent: str
    text: str
    begins: bool = False
    """True for the first piece of an answer."""

    ends: bool = False
    """True for the last piece of an answer; its text may be empty."""


class Drafted(msgspec.Struct):
    """The draft of one answer so far."""

    turn_id: str
    text: str = ""


def missing_part(shown: str, text: str) -> str:
    """Give what must still be shown so that all of `text` is shown.

    Args:
        shown: the drafts that people have seen; they cannot be taken back.

    Returns:
        The rest of the text if the drafts are its beginning; nothing if they differ
        only by white space at the ends; else the whole text after an empty line.
    """
    if text.startswith(shown):
        return text[len(shown) :]
    seen, whole = shown.strip(), text.strip()
    if whole.startswith(seen):
        rest = whole[len(seen) :]
        blanks = len(shown) - len(shown.rstrip())
        return rest.lstrip() if blanks else rest
    return "\n\n" + text


class DraftSpeakers:
    """Puts answers that are written at the same time into one readable order.

    Args:
        first: the answer that is shown first: drafts of others wait until it was
            delivered or given up. None: whichever comes first.
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
        """Whether an answer has begun and is not complete."""
        return self._has_begun

    def draft(self, draft: Draft) -> list[DraftPiece]:
        """Take a piece of an answer that is being written."""
        key = (draft.correlation_id, draft.agent)
        if draft.turn_id in self._finished_turns:
            return []
        known = self._drafts.get(key)
        if known is None:
            if len(self._drafts) >= MOST_DRAFTS:
                return []
            known = self._drafts[key] = Drafted(draft.turn_id)
        if known.turn_id != draft.turn_id:
            # The turn was begun again after a restart: its drafts come again, too.
            known.turn_id, known.text = draft.turn_id, ""
        known.text += draft.text
        if self._speaker is None:
            self._speaker = key
        return self._show_draft(known) if key == self._speaker else []

    def deliver(self, delivery: Delivery) -> list[DraftPiece]:
        """Take a whole answer; it is shown now, or after the one being shown."""
        key = (delivery.correlation_id, delivery.agent)
        if not self._has_begun or key == self._speaker:
            return [*self._say(delivery), *self._go_on()]
        self._held.append(delivery)
        return self._cut_short() if len(self._held) > MOST_HELD else []

    def give_up(self, correlation_id: str) -> list[DraftPiece]:
        """Take note that no more answers with this correlation id will come."""
        for key in [key for key in self._drafts if key[0] == correlation_id]:
            if key != self._speaker:
                self._forget(key)
        if self._speaker is None or self._speaker[0] != correlation_id:
            return []
        return self._cut_short()

    def _show_draft(self, known: Drafted) -> list[DraftPiece]:
        if self._speaker is None or not known.text.startswith(self._shown):
            # It repeats what was shown, or differs from it: wait for the delivery.
            return []
        new = known.text[len(self._shown) :]
        if not new:
            return []
        piece = DraftPiece(self._speaker[1], new, begins=not self._has_begun)
        self._shown, self._has_begun = known.text, True
        return [piece]

    def _say(self, delivery: Delivery) -> list[DraftPiece]:
        key = (delivery.correlation_id, delivery.agent)
        is_going_on = self._has_begun and key == self._speaker
        shown = self._shown if is_going_on else ""
        piece = DraftPiece(
            delivery.agent,
            missing_part(shown, delivery.text),
            begins=not is_going_on,
            ends=True,
        )
        self._forget(key)
        if key == self._speaker:
            self._speaker, self._shown, self._has_begun = None, "", False
        return [piece]

    def _cut_short(self) -> list[DraftPiece]:
        speaker, had_begun = self._speaker, self._has_begun
        self._speaker, self._shown, self._has_begun = None, "", False
        if speaker is None:
            return self._go_on()
        self._forget(speaker)
        end = [DraftPiece(speaker[1], "", ends=True)] if had_begun else []
        return [*end, *self._go_on()]

    def _go_on(self) -> list[DraftPiece]:
        """Show what waited, then go on with the next answer that has drafts."""
        pieces: list[DraftPiece] = []
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
