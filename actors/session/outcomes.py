"""What settles the messages of a turn, by how the turn ended. Pure.

A turn is answered, put off, given up, stopped or interrupted; a message that found no
place is refused or dropped. Each of these becomes one `Answer`, which the outbox stores
and sends.
"""

from __future__ import annotations

import msgspec

from actors.agents.persona import Persona
from actors.journal import answers
from actors.journal.answers import Answer, PendingMessage, combined, said_meanwhile
from actors.journal.history import History, Reset
from actors.messages import busy_policies, state as message_state
from actors.messages.inbound import ALONE, Inbound, TranscriptLine
from actors.messages.usage import Run
from actors.protocol import Failed, Finished
from actors.rules.prompt.untrusted import sender_of
from actors.services import Services
from actors.session import reply_windows
from actors.session.initiative import settle_decision
from actors.turn import files as attachments

BUSY = "I have too much to answer in this chat already. Please try again."
DROPPED = (
    "⚠️ Too much came in at once, so I let the oldest go: “{words}”. While more waits,"
    " the oldest goes first. Please send again what I do not answer."
)
GAVE_UP = "⚠️ I tried this {count} times and could not finish it. Please ask anew."


def as_read(pending: PendingMessage, outcome: Finished | Failed) -> PendingMessage:
    """Leave out messages put into a turn that never read them; they get their own."""
    read = tuple([x for x in pending.injected if x.id in outcome.joined])
    return msgspec.structs.replace(pending, injected=read)


class Outcomes(msgspec.Struct, eq=False):
    """Writes the answers of one conversation's turns."""

    _history: History
    _persona: Persona
    _services: Services

    def finished(self, pending: PendingMessage, finished: Finished, run: Run) -> Answer:
        """Answer with what the model said."""
        inbound = pending.inbound
        asked = self._asked(pending, finished.heard)
        if inbound.occasion in ALONE:  # the model goes on elsewhere
            finished = msgspec.structs.replace(finished, resume="")
        persona, services = self._persona, self._services
        if inbound.occasion == "autonomous":
            made = (services.ids, services.clock.wall())
            return settle_decision(inbound, finished, persona, made, run)
        if finished.is_withheld:
            withheld = answers.withheld(inbound, asked, finished, persona, run)
            return combined(withheld, pending)
        answer = answers.reply(pending.asked, asked, finished, persona, services, run)
        answer = msgspec.structs.replace(answer, inbound=inbound)
        if finished.carried.ends:
            ends = Reset(
                id=services.ids.new(),
                reason="model",
                messages=self._history.said + len(answer.lines),
                sender_id=inbound.sender_id,
            )
            answer = msgspec.structs.replace(answer, ends=ends)
        return combined(reply_windows.with_window(answer, persona), pending)

    def given_up(
        self,
        pending: PendingMessage,
        failed: Failed | None,
        given_up: message_state.GiveUp,
        run: Run | None,
    ) -> Answer:
        """Say that there is no answer.

        Args:
            failed: how the turn ended; None: none was begun, all attempts are used up.
            run: what the turn took, if one was begun.
        """
        if failed is None:
            text = GAVE_UP.format(count=pending.state.attempts)
            failed = Failed(text, given_up.reason)
        settled = (given_up.state, given_up.reason)
        asked = self._asked(pending)
        answer = answers.failure(pending.inbound, asked, failed, settled, run)
        return combined(answer, pending)

    def stopped(self, pending: PendingMessage, run: Run | None = None) -> Answer:
        """Keep a stopped message's words, and that nobody answered them.

        A stopped command leaves nothing in the conversation.
        """
        inbound = pending.inbound
        if pending.told:
            return answers.notice(inbound, "(stopped)", ("cancelled", "stopped"))
        return combined(answers.cancelled(inbound, self._asked(pending), run), pending)

    def interrupted(self, pending: PendingMessage, run: Run | None) -> Answer:
        """Keep words whose turn newer words of their sender have ended."""
        return answers.interrupted(pending, self._asked(pending), run)

    def _asked(
        self, pending: PendingMessage, heard: str | None = None
    ) -> tuple[TranscriptLine, ...]:
        """Give what was asked as lines of the history."""
        inbound = pending.inbound
        text = attachments.named_only(pending.asked) if heard is None else heard
        everybody = self._persona.everybody
        asked = TranscriptLine("user", text, name=sender_of(inbound, everybody))
        brought = self._history.brought(inbound)
        return (*brought, asked, *said_meanwhile(pending.injected, everybody))


def refused(inbound: Inbound) -> Answer:
    """Say that a message finds no place in the queue."""
    return answers.notice(inbound, BUSY, ("dropped", "busy"), "busy")


def dropped(inbound: Inbound) -> Answer:
    """Say that a message was let go because too many waited."""
    words = busy_policies.shortened(inbound.text) or "…"
    text = DROPPED.format(words=words)
    return answers.notice(inbound, text, ("dropped", "overflow"), "busy")
