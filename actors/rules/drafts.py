"""What stands in a chat of an answer that is still being written: messages, edited.

Pure: is told of words and of what became of the last call to the platform, and says
which call is next. The newest words win: what was not shown is never caught up on.

An answer that is too long for one message goes on in a further one, cut as its parts
will be (`parts.py`). If something else is said about the same question in between (a
tool that runs, a question for leave), it goes on below that, in a further message, too.
At the end every message reads what the answer says there.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import msgspec

from actors.rules.line_shapes import fence_of
from actors.rules.measures import CHARACTERS
from actors.rules.parts import closed, opened, split

if TYPE_CHECKING:
    from actors.rules.measures import Measure

Ending = Literal["whole", "instead", "after", "nothing"]
"""What a delivery is to the draft before it: the answer itself; said instead of it;
said after what stands there; nothing is said at all."""

WITHDRAWN = "(withdrawn)"
"""What a message reads that should not be there, where none can be taken away."""

# Chosen: longer than any answer may be by default.
MOST_CHARS = 200_000

TAIL = 40


class Message(msgspec.Struct):
    """One message of the answer that stands in the chat."""

    number: int
    """Counts the messages that ever were a draft of this answer, from 0."""

    agent: str
    """Under whose name it stands there."""

    receipt: str = ""
    """The platform's id of it; empty: it may be there, and has to be found."""

    shown: str = ""
    """What it reads, as far as that is known."""


class Start(msgspec.Struct, frozen=True):
    """Where in the answer something else was said."""

    at: int
    tail: str = ""
    """The words before; another answer with other words is not cut there."""


class Place(msgspec.Struct, frozen=True):
    """Say a further message, number `index` of those that stand there."""

    index: int
    text: str


class Change(msgspec.Struct, frozen=True):
    """Let a message read otherwise; empty: take it away."""

    index: int
    text: str


class Plan(msgspec.Struct, frozen=True):
    """How a delivery is said where drafts of it stand."""

    changes: tuple[Change, ...]
    """All but the last are for what stands before it."""

    rest: str = ""
    """What is still to be said in a message of its own, after the changes."""


class Drafts:
    """The messages of one answer.

    Args:
        most: longest message; 0: any.
        placeholder: what the first one reads before there are words; empty: the words.
        measure: what counts how much of it; without, every character counts 1.
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
        self._starts: list[Start] = [Start(0)]
        self.messages: list[Message] = []
        """Those that stand in the chat, in their order."""

        self.next_number = 0
        self.is_given_up = False
        """Whether none is changed any more before the end."""

    @property
    def starts(self) -> tuple[Start, ...]:
        """Where something else was said in between, after the beginning."""
        return tuple(self._starts[1:])

    def restore(
        self, messages: list[Message], starts: list[Start], number: int
    ) -> None:
        """Take up what an earlier process, or incarnation, left in the chat."""
        self.messages, self.next_number = messages, number
        self._starts = [Start(0), *starts]

    def take(self, turn_id: str, begins_at: int, text: str) -> None:
        """Take the next words.

        Args:
            turn_id: another one than before begins from the beginning.
            begins_at: how many characters the turn has said before these.
            text: what is new.
        """
        if turn_id != self._turn_id:
            self._turn_id, self._text, self._is_torn = turn_id, "", False
        known = len(self._text)
        if begins_at != known or known + len(text) > MOST_CHARS:
            self._is_torn = True  # some are lost, or it never ends: wait for the end
        if not self._is_torn:
            self._text += text

    def close(self) -> Start | None:
        """Have the next words begin a further message: something else is said now.

        Returns:
            Where; None: nothing has been said since the last time.
        """
        at, before = len(self._text.rstrip()), self._starts[-1].at
        if not self._text[before:at].strip():
            return None
        start = Start(at, self._text[max(0, at - TAIL) : at])
        self._starts.append(start)
        return start

    def next(self) -> Place | Change | None:
        """Say what is to be done next; None: all that was said stands there."""
        if self.is_given_up or self._is_torn:
            return None
        pieces = self._pieces(steady(self._text))
        wanted = [self._presentable(each) for each in pieces]
        for index, text in enumerate(wanted):
            if index == len(self.messages):
                is_first = index == 0 and self._placeholder
                return Place(index, self._placeholder if is_first else text)
            shown = self.messages[index].shown
            # A turn that was begun again repeats itself: nothing is taken back then.
            is_ahead = index == len(wanted) - 1 and shown.startswith(text)
            if shown != text and not is_ahead:
                return Change(index, text)
        return None

    def finish(self, text: str, part: int, parts: int, ending: Ending) -> Plan | None:
        """Say how a delivery is said; None: as if there were no draft.

        Args:
            text: its words.
            part: which part of its reply it is, from 0.
            parts: how many that has.
            ending: what it is to the draft.
        """
        if not self.messages:
            return None
        last = len(self.messages) - 1
        match ending:
            case "nothing":
                return Plan(())
            case "instead":
                return Plan((Change(last, text),))
            case "after":
                return self._after(last, text)
            case "whole":
                return self._whole(text, part, parts)

    def surplus(self, ending: Ending, parts: int, text: str) -> list[int]:
        """Give the messages that have no part of the answer, and should not be there.

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
        """Begin anew: what stands there is no draft any more."""
        self.messages, self._starts = [], [Start(0)]

    def _after(self, last: int, text: str) -> Plan | None:
        shown = self.messages[last].shown
        if not shown:
            return None
        whole = text if shown == self._placeholder else f"{closed(shown)}\n\n{text}"
        fits = not self._most or self._measure.size(whole) <= self._most
        return Plan((Change(last, whole),)) if fits else None

    def _whole(self, text: str, part: int, parts: int) -> Plan | None:
        pieces = self._pieces(text) if parts == 1 else []
        if len(pieces) <= 1:
            is_there = part < len(self.messages)
            return Plan((Change(part, text),)) if is_there else None
        pairs = zip(range(len(self.messages)), pieces, strict=False)
        changes = tuple(Change(index, piece) for index, piece in pairs)
        return Plan(changes, "\n\n".join(pieces[len(changes) :]))

    def _pieces(self, text: str) -> list[str]:
        """Cut a text as it stands in the chat: where it must, and where it was left."""
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
        """Give what may be shown of a piece that may go on."""
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
