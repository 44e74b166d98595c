"""Requests that wait for agents' answers; on the edge's loop.

An exchange is one request and its answers. It begins with one answer owed; an answer
may announce more (one for each delegation). It is over when all have come, or when the
message is settled, or when it fails. Usually one request waits for a message; a
repeated one (the same `Idempotency-Key`) waits beside the first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from starlette.types import Receive

from actors.messages.deliveries import Delivery, Draft, Owed
from actors.messages.inbound import Usage
from actors.outbound.draft_rules import DraftPiece, DraftSpeakers
from actors.transport import Earlier
from connectors.web.server import ApiError, trouble_error
from runtime.clock import SystemClock


class AnswerText:
    """The answers of one or several agents as one text.

    An answer begins with its agent's name if another agent wrote the one before.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._last_agent = ""

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._parts)

    def add(self, pieces: list[DraftPiece]) -> str:
        """Add pieces, and give the text that they add."""
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


class HttpExchange:
    """The answers to one request.

    Args:
        agent: who was asked; speaks first.
        is_live: whether drafts are shown as they come.
        hears_drafts: False for a request that came in the middle of an answer: its
            drafts would begin in the middle.
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
        """Set if there is no whole answer."""

        self.usage = Usage()
        """Tokens of the turns behind the answers, as far as models reported them."""

        self.thought = ""
        self.actions: tuple[str, ...] = ()
        """Both of the message's own answer; see `Delivery`."""

        self.is_gone = False
        """True when the client has closed the connection."""

        self._is_live = is_live
        self._hears_drafts = hears_drafts
        self._owed = Owed()
        self._is_over = False
        self._was_cancelled = False
        self._correlation_id = correlation_id
        # Two texts: drafts as they came, and the delivered answers alone.
        self._live = DraftSpeakers(first=(correlation_id, agent))
        self._live_script = AnswerText()
        self._whole = DraftSpeakers()
        self._whole_script = AnswerText()
        self._unsent: list[str] = []
        self._delivered: set[str] = set()
        self._news = asyncio.Event()

    @property
    def is_over(self) -> bool:
        """Whether no more answers will come."""
        return self._is_over or self.is_gone or self.failure is not None

    @property
    def text(self) -> str:
        """The answers so far; of a cancelled message, the drafts too."""
        if self._is_live or self._was_cancelled:
            return self._live_script.text
        return self._whole_script.text

    def draft(self, draft: Draft) -> None:
        """Add a piece of an answer that is still being written."""
        if self._hears_drafts and not self.is_over:
            self._show(self._live.draft(draft))

    def deliver(self, delivery: Delivery) -> bool:
        """Add an answer; False if the exchange is over.

        A delivery that is repeated counts once.
        """
        if delivery.id in self._delivered:
            return True
        if self.is_over:
            return False
        if delivery.ends:
            self.settle(delivery.ends)
            return True
        if delivery.trouble == "waiting" or delivery.is_aside:
            return True  # no part of the answer: the request goes on waiting
        if delivery.trouble and delivery.is_root and not self._delivered:
            self._fail_by(delivery)
            return True
        self._count(delivery)
        return True

    def _fail_by(self, delivery: Delivery) -> None:
        wait = delivery.retry_at - SystemClock().wall() if delivery.retry_at else None
        self.fail(trouble_error(delivery.trouble, delivery.text, wait))

    def _count(self, delivery: Delivery) -> None:
        self._delivered.add(delivery.id)
        self.usage += delivery.usage or Usage()
        if delivery.is_root and not delivery.part:
            self.thought, self.actions = delivery.thought, delivery.actions
        if delivery.kind != "silence":
            self._show(self._live.deliver(delivery))
            self._whole_script.add(self._whole.deliver(delivery))
        if self._owed.count(delivery):
            self._finish()

    def catch_up(self, known: Earlier) -> None:
        """Add all answers that came before this exchange was opened."""
        for delivery in known.current:
            self.deliver(delivery)
        if known.is_unanswered:
            self.settle(known.outcome)

    def settle(self, reason: str) -> None:
        """End it: no more answers will come; `reason` as in `Transport.settle`."""
        if self.is_over:
            return
        kind, _, why = reason.partition(":")
        if kind in {"dropped", "dead"} and self._delivered:
            # A delegate failed after other answers came: those are the answer.
            self._finish()
        elif kind == "dropped":
            self.fail(unanswered(422, f"no agent answers this: {why}", "dropped"))
        elif kind == "dead":
            text = "the agent could not answer; the server's log says why"
            self.fail(unanswered(500, text, "no_answer"))
        else:
            self._was_cancelled = kind == "cancelled"
            self._finish()

    def fail(self, error: ApiError) -> None:
        """End it with an error in place of the rest of the answer."""
        if not self.is_over:
            self.failure = error
            self._news.set()

    def hang_up(self) -> None:
        """End it: the client has closed the connection."""
        self.is_gone = True
        self._news.set()

    def take(self) -> str:
        """Give the text that was not streamed yet."""
        text = "".join(self._unsent)
        self._unsent.clear()
        self._news.clear()
        if self.is_over:
            self._news.set()
        return text

    async def wait_news(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109
        """Wait until there is text to take, or the exchange is over.

        Args:
            timeout: seconds, or None to wait as long as it takes.

        Returns:
            False if the time was up before.
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

    def _show(self, pieces: list[DraftPiece]) -> None:
        text = self._live_script.add(pieces)
        if text and self._is_live:
            self._unsent.append(text)
            self._news.set()

    def _finish(self) -> None:
        self._show(self._live.give_up(self._correlation_id))
        self._is_over = True
        self._news.set()


def unanswered(status: int, text: str, code: str) -> ApiError:
    """Make the error for a message that was accepted and gets no answer."""
    return ApiError(status, text, code=code, may_repeat=False)


class OpenExchanges:
    """All exchanges, by correlation id; at most one for each connection."""

    def __init__(self) -> None:
        self._exchanges: dict[str, list[HttpExchange]] = {}

    def __len__(self) -> int:
        """Count the messages that requests wait for."""
        return len(self._exchanges)

    @contextmanager
    def holding(self, correlation_id: str, exchange: HttpExchange) -> Generator[None]:
        """Route answers to an exchange during the block."""
        held = self._exchanges.setdefault(correlation_id, [])
        held.append(exchange)
        try:
            yield
        finally:
            held.remove(exchange)
            if not held:
                del self._exchanges[correlation_id]

    def all(self) -> Iterator[HttpExchange]:
        """Give all exchanges."""
        for held in tuple(self._exchanges.values()):
            yield from tuple(held)

    def deliver(self, delivery: Delivery) -> bool:
        """Give an answer to all that wait for it; False: none does any more."""
        heard = [each.deliver(delivery) for each in self._of(delivery.correlation_id)]
        return any(heard)

    def draft(self, draft: Draft) -> None:
        """Give a piece of an answer to all that wait for it."""
        for exchange in self._of(draft.correlation_id):
            exchange.draft(draft)

    def settle(self, correlation_id: str, reason: str) -> None:
        """End all that wait for a message: no more answers will come."""
        for exchange in self._of(correlation_id):
            exchange.settle(reason)

    def _of(self, correlation_id: str) -> tuple[HttpExchange, ...]:
        return tuple(self._exchanges.get(correlation_id, ()))


async def watch_client(receive: Receive, exchange: HttpExchange) -> None:
    """End the exchange when its client closes the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
    exchange.hang_up()
