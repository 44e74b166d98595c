"""The text that a model streams during a turn, and where it goes.

Also the tokens by which a model can resume a conversation later.
"""

from __future__ import annotations

import math

import msgspec
import trio

from actors.messages.deliveries import Status
from actors.protocol import StartTurn, TurnProgressed, TurnReported, TurnStreamed
from actors.rules.markers import parser as markers
from actors.rules.prompt.estimate import tokens_of
from actors.services import Services
from runtime.actor.actor import Actor

# Chosen: slower words are sent at once, without a wake-up of the loop for each.
WORD_PACE = 0.005
"""Seconds; words that come quicker than this are sent together."""


# Chosen: often enough for a watchdog that counts in minutes.
MOVE_PACE = 5.0
"""Seconds between two `TurnProgressed` of a turn whose drafts nobody sees."""


class AnswerStream(msgspec.Struct, eq=False):
    """The streamed text of one turn, round by round.

    Args:
        turn: the actor that sends it.
        start: the session that gets it, and whether people see drafts.
        egress: which parts of the text people may see.
    """

    _turn: Actor
    _start: StartTurn
    _services: Services
    _egress: markers.ParserRules = markers.EVERYTHING
    _rounds: list[str] = msgspec.field(default_factory=list)
    _spoken: list[str] = msgspec.field(default_factory=list)
    """The words of this round so far."""

    _untold: list[str] = msgspec.field(default_factory=list)
    _told_at: float = -math.inf

    @property
    def tokens(self) -> int:
        """Estimated tokens of the words of this round so far."""
        return sum(map(tokens_of, self._spoken))

    def begin_round(self) -> None:
        """Begin another round."""
        self._spoken.clear()

    def end_round(self, text: str) -> None:
        """Keep the whole text of a round, whether it was sent or not."""
        if text:
            self._rounds.append(text)

    def whole(self, last: str) -> str:
        """Give the text of all rounds, as it was shown.

        Args:
            last: the text if the rounds were silent.
        """
        whole = "\n\n".join(self._rounds)
        if whole == last:  # as of most, which have one round
            return whole
        parsed = markers.parse(whole, "assistant", self._egress)
        return last if parsed.is_silent else whole

    def speak(self, text: str) -> None:
        """Take the next words of the present round."""
        if not text:
            return
        if not self._spoken and self._rounds:
            text = "\n\n" + text  # as `whole` joins the rounds
        self._spoken.append(text)
        # Why not at once: a model may stream thousands of words before another task
        # runs, and the session's mailbox is bounded.
        now = self._services.clock.monotonic()
        if not self._start.inbound.wants_drafts:
            if now - self._told_at >= MOVE_PACE:
                self._told_at = now
                self.move()
            return
        is_first = not self._untold
        self._untold.append(text)
        if is_first and now - self._told_at >= WORD_PACE:
            self.tell()
        elif is_first:
            trio.lowlevel.current_trio_token().run_sync_soon(self.tell)

    def move(self) -> None:
        """Tell the session that the turn makes progress."""
        self._turn.tell(self._start.session, TurnProgressed(self._start.turn_id))

    def note(self, key: str, text: str, status: Status = "note") -> None:
        """Send people a notice beside the answer, after the words so far.

        Args:
            key: two notices with the same key are sent once.
            text: for the people in the chat.
        """
        self.tell()
        start = self._start
        self._turn.tell(start.session, TurnReported(start.turn_id, key, text, status))

    def start_over(self) -> None:
        """Take back the words of a round that broke off; earlier rounds stay."""
        if not "".join(self._spoken).strip():
            return
        self._spoken.clear()
        self._untold.clear()
        if self._start.inbound.wants_drafts:
            text = "\n\n".join(self._rounds)
            told = TurnStreamed(self._start.turn_id, text, starts_over=True)
            self._turn.tell(self._start.session, told)

    def end(self, *, is_whole: bool) -> None:
        """Send the last words, unless a whole answer follows, which has them."""
        if is_whole:
            self._untold.clear()
        else:
            self.tell()

    def tell(self) -> None:
        """Send the words since the last `TurnStreamed`."""
        if self._untold:
            text = "".join(self._untold)
            self._untold.clear()
            self._told_at = self._services.clock.monotonic()
            self._turn.tell(
                self._start.session, TurnStreamed(self._start.turn_id, text)
            )


def resume_token_of(account: str, resume: str) -> str:
    """Make the text that keeps an account's resume token; empty: it gave none."""
    return f"{account} {resume}" if resume else ""


def resume_of(account: str, resume_token_of: str) -> str:
    """Give the resume token of an account; empty if another account gave it."""
    whose, _, resume = resume_token_of.partition(" ")
    return resume if whose == account else ""
