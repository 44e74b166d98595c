"""What a model says during a turn, and who hears it while it is being said."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import trio

from actors.protocol import TurnNoted, TurnSpoke
from actors.rules import markers

if TYPE_CHECKING:
    from actors.deliveries import Status
    from actors.protocol import StartTurn
    from actors.services import Services
    from runtime.actor import Actor

# Chosen: words that come in quicker succession than this are told together. Slower
# ones are told at once, without a wake-up of the loop for each.
WORD_PACE = 0.005


# Chosen: often enough for a watchdog that counts in minutes.
MOVE_PACE = 5.0
"""Seconds between two signs of life of a turn whose words nobody sees."""


class TurnMoved(msgspec.Struct, frozen=True):
    """To a session: the turn has made progress that nobody else tells of."""

    turn_id: str


class Words:
    """The words of one turn, round by round.

    Args:
        turn: on whose behalf they are told.
        start: to whom, and whether anybody looks at them before they are complete.
        services: the clock.
        egress: what of its text counts.
    """

    __slots__ = (
        "_egress",
        "_rounds",
        "_services",
        "_start",
        "_told_at",
        "_turn",
        "_untold",
    )

    def __init__(
        self,
        turn: Actor,
        start: StartTurn,
        services: Services,
        egress: markers.Egress = markers.EVERYTHING,
    ) -> None:
        self._turn = turn
        self._egress = egress
        self._start = start
        self._services = services
        self._rounds: list[str] = []
        self._untold: list[str] = []
        self._told_at = -math.inf

    def end_round(self, text: str) -> None:
        """Take up the whole text of a round, whether it was told or not."""
        if text:
            self._rounds.append(text)

    def whole(self, last: str) -> str:
        """Give all the rounds' words: what was shown while they were written.

        Args:
            last: what is said if the rounds were silent.
        """
        whole = "\n\n".join(self._rounds)
        parsed = markers.parse(whole, "assistant", self._egress)
        return last if parsed.is_silent else whole

    def speak(self, spoken: list[str], text: str) -> None:
        """Take the next words of a round that is still being written.

        Args:
            spoken: the words of this round so far; these are added.
            text: what is said now.
        """
        if not text:
            return
        if not spoken and self._rounds:
            text = "\n\n" + text  # as `whole` joins the rounds
        spoken.append(text)
        # Why not told at once: a model may say thousands of words before anybody else
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
        """Say that the turn gets on."""
        self._turn.tell(self._start.session, TurnMoved(self._start.turn_id))

    def note(self, key: str, text: str, status: Status = "note") -> None:
        """Have people told something beside the answer, after what was said so far.

        Args:
            key: what is noted twice under one key is told once.
            text: for the people in the chat.
            status: what it is about.
        """
        self.tell()
        start = self._start
        self._turn.tell(start.session, TurnNoted(start.turn_id, key, text, status))

    def start_over(self, spoken: list[str], kept: str = "") -> None:
        """Take back the words of a round that broke off; the rounds before it stand.

        Args:
            spoken: the words of this round so far.
            kept: the beginning of them that stands, too.
        """
        if len("".join(spoken).strip()) <= len(kept):
            return
        spoken.clear()
        self._untold.clear()
        again = [*self._rounds, kept] if kept else self._rounds
        if kept:
            spoken.append(f"{kept}\n\n")
        if self._start.inbound.wants_drafts:
            text = "\n\n".join(again)
            told = TurnSpoke(self._start.turn_id, text, starts_over=True)
            self._turn.tell(self._start.session, told)
            if kept:
                self._untold.append("\n\n")

    def tell(self) -> None:
        """Pass on what was said since the last time."""
        if self._untold:
            text = "".join(self._untold)
            self._untold.clear()
            self._told_at = self._services.clock.monotonic()
            self._turn.tell(self._start.session, TurnSpoke(self._start.turn_id, text))
