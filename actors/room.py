"""Room for a question: the conversation before it, and less of it where it is too long.

Before a model is asked, the question with the history is held against what the model
reads at most; a provider may say so, too. The session is then asked to shorten the
conversation, which waits, and the same turn goes on with what is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.condensing import Shorten, Shortened
from actors.rules import compaction
from actors.rules.fitting import estimate
from runtime.errors import KernelError
from runtime.logs import EventLog
from runtime.ref import UNANSWERED

if TYPE_CHECKING:
    from actors.collaboration_config import CollaborationConfig
    from actors.messages import ModelRequest
    from actors.persona import Persona
    from actors.protocol import StartTurn
    from actors.rules.accounts import Offer
    from actors.rules.compaction import Trigger
    from actors.services import Services
    from actors.words import Words
    from runtime.actor import Actor

LOG = EventLog("turn")

# Chosen: what a session takes longer than its condenser: a commit, and the disk may be
# slow.
SHORTENED_WITHIN = 30.0

# Chosen: once before the model is asked, once after it has refused, and once more with
# lines that are cut.
MOST = 3

CUT_SHORT = (
    "⚠️ Context window exceeded: this conversation had become too long. I go on with"
    " its newest {count} messages, cut short."
)


class Room:
    """The conversation before one question.

    Args:
        turn: on whose behalf the session is asked.
        start: the question.
        persona: knows how much its model takes where the model's table does not say.
        services: settings.
    """

    __slots__ = (
        "_made",
        "_must",
        "_services",
        "_trigger",
        "_turn",
        "_window",
        "cut_tokens",
        "earlier",
        "history",
        "start",
        "summaries",
        "was_made",
    )

    def __init__(
        self, turn: Actor, start: StartTurn, persona: Persona, services: Services
    ) -> None:
        self._turn = turn
        self._window = persona.config.context.window_tokens
        self.start = start
        """The question."""

        self._services = services
        self._trigger: Trigger | None = None
        self._must = False
        self._made = 0
        self.history = start.history
        """Earlier lines, oldest first."""

        self.earlier = start.earlier
        """How many lines there were before these."""

        self.summaries = start.summaries
        """What earlier parts were about."""

        self.cut_tokens = 0
        """Of what the last request had to leave out, though it is held."""

        self.was_made = False
        """Whether there is less of it than at the beginning."""

    @property
    def max_chars(self) -> int:
        """Most characters of the history that are shown."""
        return self._services.compaction.max_chars

    @property
    def collaboration(self) -> CollaborationConfig:
        """How agents may work with each other."""
        return self._services.collaboration

    def fits(self, request: ModelRequest, offer: Offer) -> bool:
        """Whether a request may go to a model; looked at once, before the first."""
        settings = self._services.compaction
        if self._made or not self.history:
            return True
        window = offer.window or self._window
        load = compaction.Load(
            tokens=estimate(request).input_tokens + self.cut_tokens,
            window=window,
            characters=compaction.characters_of(self.history),
        )
        found = compaction.overfull(load, settings.share, settings.max_chars)
        self._trigger = found
        self._must = found is not None and load.tokens > window
        return found is None

    async def make(self, words: Words) -> bool:
        """Make room; False: there is nothing more to take away.

        Args:
            words: by which people are told what was cut.
        """
        self._made += 1
        if not self.history or self._made > MOST:
            return False
        trigger, must = self._trigger or "error", self._must
        is_refused, self._trigger = self._trigger is None, None
        shortened = await self._shorten(trigger, must=must or is_refused)
        before = self.history
        if shortened is not None and shortened.history:
            self.history, self.earlier = shortened.history, shortened.earlier
            self.summaries = shortened.summaries
        if self.history == before and is_refused:
            # Nobody keeps these lines, or nothing could be summed up.
            self._cut()
        self.was_made = self.was_made or self.history != before
        if shortened is not None and shortened.outcome == "truncated":
            words.note("context", CUT_SHORT.format(count=len(self.history)))
        # Before the model has refused it, it is asked all the same.
        return self.history != before or not is_refused

    def _cut(self) -> None:
        settings = self._services.compaction
        cut = compaction.truncated(self.history, settings.cut_lines, settings.cut_chars)
        self.earlier += len(self.history) - len(cut)
        self.history = cut

    async def _shorten(self, trigger: Trigger, *, must: bool) -> Shortened | None:
        start = self.start
        wanted = Shorten(start.turn_id, trigger, must)
        within = self._services.compaction.timeout + SHORTENED_WITHIN
        try:
            shortened: Shortened = await start.session.ask(wanted, timeout=within)
        except (*UNANSWERED, KernelError) as error:
            LOG.warning("conversation not shortened", why=str(error))
            return None
        return shortened
