"""A session's answer to a message, and the one commit that stores all of it; pure.

The commit settles the message, appends the answer's lines to the journal, and adds its
deliveries and delegated messages. An answer may be to several messages: all are settled
with it, and it is sent as the answer to the newest, which people see last. For each
other one, whoever counts answers is told that none of its own will come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from actors.delegation.handing import beside, hand_on_all
from actors.journal.attachments import names_of
from actors.journal.history import Chapter, Reset
from actors.journal.outbox import delivery, numbered, pieces, silent_result
from actors.journal.plan import NOTHING, Carried, told
from actors.messages import busy_policies, state as message_state
from actors.messages.busy_policies import Style
from actors.messages.deliveries import Delivery, Status, Trouble
from actors.messages.inbound import Inbound, SentFile, TranscriptLine, Usage
from actors.messages.usage import Run
from actors.rules.markers.sanitizer import clean
from actors.rules.prompt import transcript
from actors.rules.prompt.untrusted import sender_of
from actors.rules.text.durations import lasting
from actors.rules.text.translations import by_line, english
from runtime.store.facts import FactChange
from runtime.store.rows import SettledState

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from actors.agents.persona import Persona
    from actors.protocol import Failed, Finished
    from actors.rules.markers import parser as markers
    from actors.services import Services
    from runtime.ids import IdSource


FAILED = "[Task failed]"
TIMED_OUT = "[Task timed out]"
STOPPED = "[Task stopped]"
"""The assistant's line in the history after a turn that failed or was stopped: the next
words are a new question then, not the rest of that one."""

WITHHELD = "[This answer was held back before anybody read it]"
"""What the model reads later in place of an answer that was held back."""

ASK_AFTER = "Please ask again in {span}."

FEW_MINUTES = 300.0
"""Seconds up to which people are told of a few minutes."""

MINUTE, HOUR = 60.0, 3600.0

CUT = "\n\n(cut: the answer was longer than {most} characters)"


class CombinedMessage(msgspec.Struct, frozen=True):
    """A further message that an answer is to."""

    inbound: Inbound
    how: Literal["merged", "steered"] = "merged"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is stored and sent about one message."""

    inbound: Inbound
    settled: tuple[SettledState, str]
    """The message's terminal state and the reason; with `put_off` only the reason."""

    put_off: message_state.Postpone | None = None
    """Set if the turn will be begun again later; then this is no final answer."""

    lines: tuple[TranscriptLine, ...] = ()
    """For the history."""

    run: Run | None = None
    """The turn's models, tokens and cost."""

    resume: str = ""
    """The model's session id, to resume it later."""

    ends: Reset | None = None
    """Set if the conversation ends with it."""

    remembered: tuple[FactChange, ...] = ()
    """Facts that are stored with it."""

    deliveries: tuple[Delivery, ...] = ()
    handed: tuple[Inbound, ...] = ()
    """Messages for other agents."""

    carried: Carried = NOTHING
    """What its markers asked for, to be stored with it."""

    also: tuple[CombinedMessage, ...] = ()
    """Further messages that are settled with it, in order."""


class Aside(msgspec.Struct, frozen=True, kw_only=True):
    """A notice about a message, sent before and beside its answer."""

    inbound: Inbound
    delivery: Delivery


class ChapterEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An event for the journal that answers no message: compaction, flush or reset."""

    chapter: Chapter
    """Its counts do not include lines that came after it was made."""

    messages: int
    """Lines of the conversation when it was made."""

    resets: int
    """Conversations that had ended when it was made. If one more has when it is stored,
    the entry is void."""

    remembered: tuple[FactChange, ...] = ()
    """Facts that are stored with it."""


def aside(inbound: Inbound, key: str, text: str, status: Status = "") -> Aside:
    """Make a notice in the course of an answer, in the runtime's own words.

    Args:
        key: notices with the same key are sent once.
        text: for the people in its chat.
        status: what it says about the progress; empty: nothing.
    """
    said = msgspec.structs.replace(
        delivery(inbound, "", text),
        status=status,
        id=f"{inbound.id}:aside:{key}",
        is_aside=True,
        is_root=False,
        answers_left=1,  # it replaces no answer
    )
    return Aside(inbound=inbound, delivery=said)


def notice(
    inbound: Inbound,
    text: str,
    settled: tuple[SettledState, str],
    trouble: Trouble = "",
) -> Answer:
    """Make an answer in the runtime's own words; the history does not change.

    Nobody waits for what an agent has said in a lane: it has been read already.
    """
    if inbound.occasion == "told":
        return Answer(inbound=inbound, settled=settled)
    said = delivery(inbound, "", text, trouble=trouble)
    return Answer(inbound=inbound, settled=settled, deliveries=(said,))


def localised(answer: Answer, services: Services) -> Answer:
    """Translate the runtime's own sentences for their reader."""
    if not [each for each in answer.deliveries if not each.agent]:
        return answer  # they are an agent's words
    retell = services.retell(answer.inbound)
    if retell is english and all(type(x.text) is str for x in answer.deliveries):
        return answer
    said = tuple(
        [
            # Why `str`: a translated text is stored as a plain one.
            each
            if each.agent
            else msgspec.structs.replace(each, text=str(retell(each.text)))
            for each in answer.deliveries
        ]
    )
    return msgspec.structs.replace(answer, deliveries=said)


def spoken_by(answer: Answer, agent: str) -> Answer:
    """Have an agent's own account say the runtime's notices about it."""
    return msgspec.structs.replace(
        answer, deliveries=tuple([with_speaker(x, agent) for x in answer.deliveries])
    )


def with_speaker(delivery: Delivery, agent: str) -> Delivery:
    """Have an agent's own account say a notice; its own words are its own already."""
    if delivery.agent or delivery.speaker:
        return delivery
    return msgspec.structs.replace(delivery, speaker=agent)


def localised_aside(aside: Aside, services: Services) -> Aside:
    """Translate a notice for the asking person; in other chats as the settings say."""
    is_here = aside.delivery.address == aside.inbound.address
    retell = services.retell(aside.inbound) if is_here else services.voices.retell()
    text = str(retell(aside.delivery.text))
    said = msgspec.structs.replace(aside.delivery, text=text)
    return msgspec.structs.replace(aside, delivery=said)


def reminder(inbound: Inbound, persona: Persona) -> Answer:
    """Make the answer that sends a reminder as it was set, in the agent's name."""
    text = f"⏰ {inbound.text}"
    return Answer(
        inbound=inbound,
        settled=("replied", "reminder"),
        lines=(
            TranscriptLine(
                "user", f"(A reminder that was set earlier is due: {inbound.text})"
            ),
            TranscriptLine("assistant", text, name=persona.name),
        ),
        deliveries=(delivery(inbound, persona.name, text),),
    )


def apology(inbound: Inbound, text: str, reason: str, ids: IdSource) -> Answer:
    """Make the answer that gives a message up, in the runtime's own words."""
    return leaving_ids(notice(inbound, text, ("dead", reason), "broken"), ids)


def leaving_ids(answer: Answer, ids: IdSource) -> Answer:
    """Leave the usual delivery ids to a later attempt, if there may be one.

    A postponed message is begun again, and a dead one may be retried by hand.
    """
    if answer.put_off is None and answer.settled[0] != "dead":
        return answer
    return with_new_ids(answer, ids)


def with_new_ids(answer: Answer, ids: IdSource) -> Answer:
    """Give an answer's deliveries new, unique ids."""
    said = tuple(
        msgspec.structs.replace(each, id=f"{each.id}:{ids.new()}")
        for each in answer.deliveries
    )
    return msgspec.structs.replace(answer, deliveries=said)


def cancelled(
    inbound: Inbound, asked: tuple[TranscriptLine, ...], run: Run | None = None
) -> Answer:
    """Make the answer to a message that was stopped."""
    said = delivery(inbound, "", "(stopped)")
    return Answer(
        inbound=inbound,
        settled=("cancelled", "stopped"),
        lines=(*asked, TranscriptLine("assistant", STOPPED)),
        deliveries=(msgspec.structs.replace(said, after_draft=True),),
        run=run,
    )


def failure(
    inbound: Inbound,
    asked: tuple[TranscriptLine, ...],
    failed: Failed,
    settled: tuple[SettledState, str],
    now: float,
    run: Run | None = None,
) -> Answer:
    """Make the answer to a message whose turn failed."""
    advice, wait = failed.advice, failed.not_before - now
    if advice and wait > FEW_MINUTES:
        unit = HOUR if wait > HOUR else MINUTE
        # Why rounded up: before that, asking again does not help.
        advice = ASK_AFTER.format(span=lasting(-(-wait // unit) * unit))
    mark = TIMED_OUT if failed.trouble == "timeout" else FAILED
    text = "\n\n".join(filter(None, (failed.text, advice)))
    said = delivery(inbound, "", text, trouble=failed.trouble)
    said = msgspec.structs.replace(said, retry_at=failed.not_before)
    # A picture that a model cannot see would break every later question, too.
    is_kept = failed.reason != "vision"
    return Answer(
        inbound=inbound,
        settled=settled,
        lines=(*asked, TranscriptLine("assistant", mark)) if is_kept else (),
        deliveries=(said,),
        run=run,
    )


def deferral(
    inbound: Inbound,
    failed: Failed,
    put_off: message_state.Postpone,
    now: float,
    run: Run | None = None,
) -> Answer:
    """Make the answer that says that the turn will be retried; said once."""
    text = (
        f"{failed.text}\n\nI will try again in {lasting(put_off.due_at - now)};"
        " /stop ends that."
    )
    said = delivery(inbound, "", text, trouble="waiting")
    said = msgspec.structs.replace(
        said,
        id=f"{inbound.id}:waiting",
        is_root=False,
        answers_left=1,  # it replaces no answer
    )
    return Answer(
        inbound=inbound,
        settled=("replied", failed.reason),
        put_off=put_off,
        deliveries=(said,) if put_off.is_first else (),
        run=run,
    )


def reply(
    inbound: Inbound,
    asked: tuple[TranscriptLine, ...],
    finished: Finished,
    persona: Persona,
    services: Services,
    run: Run | None = None,
) -> Answer:
    """Make the answer of a finished turn: text for people, work for other agents."""
    if inbound.chain.turns:
        persona = persona.spoken_to()
    parsed = finished.parsed(persona.egress)
    for family, outcome, count in parsed.tally():
        services.metrics.marks.add(count, persona.name, family, outcome)
    carried = finished.carried
    is_quiet = parsed.says_nothing(persona.ack_chars(inbound))
    if is_quiet and not (finished.delegations or carried.files):
        return silence(inbound, asked, finished, persona, parsed.controls, run)
    persona = beside(persona, carried)
    handed, refusals = hand_on_all(inbound, finished, parsed, persona, services)
    notices = [*_came_of(parsed, carried, inbound, services), *refusals]
    most_chars = services.limits.max_reply_chars
    text = _words(parsed.visible, handed, carried.files)
    if len(text) > most_chars:
        text = text[:most_chars] + services.retell(inbound)(CUT.format(most=most_chars))
    if not (text.strip() or notices or carried.files):
        text = ACKNOWLEDGEMENT  # something was carried out without a text
    # A platform takes no empty message; a notice alone is the answer.
    can = services.accounts[inbound.address.connector].abilities
    said = pieces(persona.name, text, notices, carried.files, can)
    deliveries = numbered(inbound, said, len(handed) + inbound.others, _told(run))
    if can.shows_thoughts:
        deliveries = (_with_thought(deliveries[0], parsed), *deliveries[1:])
    sent = names_of(carried.files)
    heard = text if text.strip() else "\n".join(notices) or transcript.sent(sent)
    if persona.config.context.used_tools and can.notes_tools:
        heard = transcript.with_used_tools(heard, finished.used, sent)
    return Answer(
        inbound=inbound,
        settled=("replied", "ok"),
        lines=(*asked, TranscriptLine("assistant", heard, name=persona.name)),
        deliveries=deliveries,
        handed=tuple(handed),
        carried=carried,
        run=run,
        resume=finished.resume,
    )


def _came_of(
    parsed: markers.ParsedAnswer, carried: Carried, inbound: Inbound, services: Services
) -> list[str]:
    """Say in the reader's language what was carried out, and what was not."""
    notice = parsed.notice if parsed.dropped else ""
    if not (carried.outcomes or notice):
        return []  # as most often; nobody's language need be found out
    languages = services.languages(inbound)
    say, retell = services.voices.speak(*languages), services.voices.retell(*languages)
    return [*told(carried, say, retell), *by_line(notice, retell)]


def _with_thought(first: Delivery, parsed: markers.ParsedAnswer) -> Delivery:
    return msgspec.structs.replace(
        first, thought=clean(parsed.thought), actions=parsed.named
    )


def _told(run: Run | None) -> Usage | None:
    """Give a turn's tokens, if all its models reported them."""
    if run is None or not run.spent:
        return None
    reckoned = [each for each in run.spent if each.is_reckoned]
    return None if reckoned else run.usage


def silence(
    inbound: Inbound,
    asked: tuple[TranscriptLine, ...],
    finished: Finished,
    persona: Persona,
    controls: tuple[str, ...],
    run: Run | None = None,
) -> Answer:
    """Make an answer without text, because the agent chose to say nothing.

    Whoever counts the answers that are still to come is told all the same.
    """
    said = delivery(inbound, persona.name, "")
    heard = TranscriptLine("assistant", " ".join(controls), name=persona.name)
    return Answer(
        inbound=inbound,
        settled=("replied", "silent"),
        # Regular checks that find nothing do not fill the history.
        lines=() if inbound.occasion else (*asked, heard),
        deliveries=(msgspec.structs.replace(said, kind="silence", usage=_told(run)),),
        carried=finished.carried,  # no markers, but maybe what a person chose
        run=run,
        resume=finished.resume,
    )


def withheld(
    inbound: Inbound,
    asked: tuple[TranscriptLine, ...],
    finished: Finished,
    persona: Persona,
    run: Run | None = None,
) -> Answer:
    """Make the answer of which a hook holds everything back."""
    heard = TranscriptLine("assistant", WITHHELD, name=persona.name)
    answer = silence(inbound, asked, finished, persona, (), run)
    return msgspec.structs.replace(
        answer, settled=("replied", "withheld"), lines=(*asked, heard)
    )


def _words(visible: str, handed: list[Inbound], files: tuple[SentFile, ...]) -> str:
    """Give the text for people; an agent that only delegates says so."""
    text = "" if files and visible.strip() == ACKNOWLEDGEMENT else visible
    if not text.strip() and handed:
        text = "\n".join(f"@{each.agent} {clean(each.text)}" for each in handed)
    return text


class PendingMessage(msgspec.Struct, frozen=True):
    """A message that is not settled yet, and those that share its turn."""

    inbound: Inbound
    state: message_state.MessageState
    told: str = ""
    """The answer when the conversation has ended, if the message wants only that;
    empty: it wants an agent's answer."""

    flushes: bool = True
    """Whether the conversation is searched for facts before it ends."""

    also: tuple[Inbound, ...] = ()
    """Further messages of the same person that its turn answers, in order."""

    style: Style = "alone"
    """How their texts are joined into one question."""

    short: tuple[str, ...] = ()
    """Ids of those of which the question has only one line."""

    is_recorded: bool = False
    """Whether the journal says that they share a turn."""

    injected: tuple[Inbound, ...] = ()
    """Messages that were put into its running turn, in order."""

    @property
    def others(self) -> tuple[Inbound, ...]:
        """All further messages that its turn answers."""
        return (*self.also, *self.injected)

    @property
    def asked(self) -> Inbound:
        """The question to the turn: all messages as one."""
        if not self.also:
            return self.inbound
        each = (self.inbound, *self.also)
        texts = [
            busy_policies.shortened(x.text) if x.id in self.short else x.text
            for x in each
        ]
        return msgspec.structs.replace(
            self.inbound,
            text=busy_policies.merge(texts, self.style),
            attachments=tuple(file for x in each for file in x.attachments),
            quoted=next((x.quoted for x in each[::-1] if x.quoted is not None), None),
            wants_drafts=any(x.wants_drafts for x in each),
        )

    def without(self, gone: Collection[str]) -> PendingMessage:
        """Leave out messages that somebody else has settled."""
        return msgspec.structs.replace(
            self,
            also=tuple(x for x in self.also if x.id not in gone),
            injected=tuple(x for x in self.injected if x.id not in gone),
        )


class TurnContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn gets from its conversation."""

    lines: tuple[TranscriptLine, ...] = ()
    """The conversation so far."""

    earlier: int = 0
    """Number of lines before these."""

    summaries: tuple[str, ...] = ()
    steps: str = ""
    """Name of the journal stream of this message's rounds and tool calls."""

    answered: tuple[str, ...] = ()
    """Ids of the messages that the conversation has answered lately."""

    reported: int = 0
    """The last attempt whose rounds are in the ledger already."""

    resume: str = ""
    """The model's session id, to resume it."""

    is_steered: bool = False
    """Whether messages that arrive meanwhile are put into the turn."""


NOTHING_KNOWN = TurnContext()


def combined(answer: Answer, pending: PendingMessage) -> Answer:
    """Let an answer be to all messages of one turn.

    Args:
        answer: to the first of them.
        pending: the first message, with the others.
    """
    if not (pending.also or pending.injected):
        return answer
    also = (
        *(CombinedMessage(each) for each in pending.also),
        *(CombinedMessage(each, "steered") for each in pending.injected),
    )
    newest = also[-1].inbound
    deliveries = tuple(
        [
            msgspec.structs.replace(each, reply_to=newest.answered_id)
            if each.reply_to
            else each
            for each in answer.deliveries
        ]
    )
    if answer.put_off is None:
        deliveries += tuple([silent_result(each.inbound) for each in also])
    return msgspec.structs.replace(answer, also=also, deliveries=deliveries)


def interrupted(
    pending: PendingMessage, asked: tuple[TranscriptLine, ...], run: Run | None
) -> Answer:
    """Settle a message whose turn newer messages have ended, and keep its text.

    Args:
        asked: its text; without an answer behind it, the model reads it with the next.
        run: the turn's cost so far.
    """
    answer = Answer(
        inbound=pending.inbound,
        settled=("cancelled", "interrupted"),
        lines=asked,
        deliveries=(silent_result(pending.inbound),),
        run=run,
    )
    return combined(answer, pending)


def without_notice(answer: Answer) -> Answer:
    """Settle a message in the same way, without a delivery."""
    silence = silent_result(answer.inbound)
    return msgspec.structs.replace(answer, deliveries=(silence,))


def said_meanwhile(
    injected: Sequence[Inbound], agents: Sequence[str]
) -> tuple[TranscriptLine, ...]:
    """Give the history's lines for messages that were put into a turn."""
    return tuple(
        [
            TranscriptLine("user", each.text, name=sender_of(each, agents))
            for each in injected
        ]
    )


def without(answer: Answer, gone: Collection[str]) -> Answer:
    """Leave out further messages that somebody else has settled."""
    also = tuple(each for each in answer.also if each.inbound.id not in gone)
    kept = tuple(each for each in answer.deliveries if each.reply_id not in gone)
    return msgspec.structs.replace(answer, also=also, deliveries=kept)


ACKNOWLEDGEMENT = "\N{CHECK MARK}"
"""Sent when a model has carried something out and says nothing."""
