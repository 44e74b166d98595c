"""One request and the answers to it, as they come.

Lives on the edge's loop only: what the kernel says is posted there first. An
exchange begins with one answer owed; each answer may announce more (one for each
delegation), and it is over when all have come, or when it is settled or failed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from actors.messages import Usage
from actors.rules.owed import Owed
from actors.rules.speaking import Speakers
from connectors.web.errors import ApiError, of_trouble
from runtime.clock import SystemClock

if TYPE_CHECKING:
    from actors.deliveries import Delivery, Draft
    from actors.ingress import Earlier
    from actors.rules.speaking import Piece


class Script:
    """Answers of several agents as one text.

    The first answer stands plain; one by another agent than the answer before
    begins with its name.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._last_agent = ""

    @property
    def text(self) -> str:
        """All that has been added."""
        return "".join(self._parts)

    def add(self, pieces: list[Piece]) -> str:
        """Add what is said next; gives the text that this adds."""
        before = len(self._parts)
        for piece in pieces:
            if piece.begins:
                self._parts.append(self._opening(piece.agent))
                self._last_agent = piece.agent
            self._parts.append(piece.text)
        return "".join(self._parts[before:])

    def _opening(self, agent: str) -> str:
        if not self._parts:
            return ""
        has_new_name = agent and agent != self._last_agent
        return f"\n\n**{agent}:** " if has_new_name else "\n\n"


class Exchange:
    """What has been said to one request.

    Args:
        correlation_id: the request's message.
        agent: who was asked; speaks first.
        is_live: True if what is said is shown as it comes.
        hears_drafts: False for one that was opened in the middle of an answer: its
            drafts would begin in the middle, too.
    """

    def __init__(
        self,
        correlation_id: str,
        agent: str,
        *,
        is_live: bool,
        hears_drafts: bool = True,
    ) -> None:
        self.failure: ApiError | None = None
        """Why there is no (whole) answer."""

        self.usage = Usage()
        """What the turns behind the answers took, as far as their models told."""

        self.is_gone = False
        """True when the client has closed the connection."""

        self._is_live = is_live
        self._hears_drafts = hears_drafts
        self._owed = Owed()
        self._is_over = False
        self._was_cancelled = False
        self._correlation_id = correlation_id
        # Two readings: what people see who follow the drafts, and the answers alone.
        self._live = Speakers(first=(correlation_id, agent))
        self._live_script = Script()
        self._whole = Speakers()
        self._whole_script = Script()
        self._unsent: list[str] = []
        self._delivered: set[str] = set()
        self._news = asyncio.Event()

    @property
    def is_over(self) -> bool:
        """True when nothing more will be said."""
        return self._is_over or self.is_gone or self.failure is not None

    @property
    def text(self) -> str:
        """The answers so far; with the drafts of one that was cancelled."""
        if self._is_live or self._was_cancelled:
            return self._live_script.text
        return self._whole_script.text

    def draft(self, draft: Draft) -> None:
        """Take a piece of an answer that is still being written."""
        if self._hears_drafts and not self.is_over:
            self._show(self._live.draft(draft))

    def deliver(self, delivery: Delivery) -> bool:
        """Take an answer; False if it comes too late to be said.

        One that came before (a repeated attempt) is not said again.
        """
        if delivery.id in self._delivered:
            return True
        if self.is_over:
            return False
        if delivery.trouble == "waiting" or delivery.is_aside:
            return True  # no part of the answer; whoever waits here goes on waiting
        if delivery.trouble and delivery.is_root and not self._delivered:
            wait = (
                delivery.retry_at - SystemClock().wall() if delivery.retry_at else None
            )
            self.fail(of_trouble(delivery.trouble, delivery.text, wait))
            return True
        self._delivered.add(delivery.id)
        self.usage += delivery.usage or Usage()
        if delivery.kind != "silence":
            self._show(self._live.deliver(delivery))
            self._whole_script.add(self._whole.deliver(delivery))
        if self._owed.count(delivery):
            self._finish()
        return True

    def catch_up(self, known: Earlier) -> None:
        """Take all that was said before anybody listened here."""
        for delivery in still_true(known):
            self.deliver(delivery)
        if known.outcome and not known.deliveries:
            self.settle(known.outcome)

    def settle(self, reason: str) -> None:
        """Learn that nothing more will be said, and why (`Transport.settle`)."""
        if self.is_over:
            return
        kind, _, why = reason.partition(":")
        if kind in {"dropped", "dead"} and self._delivered:
            # Part of it was answered (a delegate failed): that part counts.
            self._finish()
        elif kind == "dropped":
            self.fail(refused_answer(422, f"no agent answers this: {why}", "dropped"))
        elif kind == "dead":
            text = "the agent could not answer; the server's log says why"
            self.fail(refused_answer(500, text, "no_answer"))
        else:
            self._was_cancelled = kind == "cancelled"
            self._finish()

    def fail(self, error: ApiError) -> None:
        """End it without a (whole) answer."""
        if not self.is_over:
            self.failure = error
            self._news.set()

    def hang_up(self) -> None:
        """Learn that the client has closed the connection."""
        self.is_gone = True
        self._news.set()

    def take(self) -> str:
        """Give what has not been taken yet of the text to stream."""
        text = "".join(self._unsent)
        self._unsent.clear()
        self._news.clear()
        if self.is_over:
            self._news.set()
        return text

    async def wait_news(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109
        """Wait until there is something to take or it is over.

        Args:
            timeout: seconds, or None to wait as long as it takes.

        Returns:
            False if the time was up first.
        """
        if timeout is None:
            await self._news.wait()
            return True
        try:
            async with asyncio.timeout(timeout):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    def _show(self, pieces: list[Piece]) -> None:
        text = self._live_script.add(pieces)
        if text and self._is_live:
            self._unsent.append(text)
            self._news.set()

    def _finish(self) -> None:
        self._show(self._live.give_up(self._correlation_id))
        self._is_over = True
        self._news.set()


def still_true(known: Earlier) -> tuple[Delivery, ...]:
    """Leave out apologies for what was tried again by hand since.

    An apology settles its message. So while the message is not settled, all of them
    are of earlier times; and when it is, all but the one that was said last, if no
    answer came after it.
    """
    roots = [each for each in known.deliveries if each.is_root]
    last = roots[-1:] if known.outcome else []
    return tuple(
        each
        for each in known.deliveries
        if not (each.is_root and each.trouble) or each in last
    )


def refused_answer(status: int, text: str, code: str) -> ApiError:
    """Make the error for a message that was accepted and gets no answer."""
    return ApiError(status, text, code=code, may_repeat=False)
