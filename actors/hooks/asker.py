"""Asks hooks: about one message, one hook after the other; in sessions, and in turns.

A session asks about a message that its agent is about to hear, or a reminder that is
about to be said. At most one is asked about at a time: those behind it wait, so that
all keep their order. Nothing else waits, neither an answer that is ready nor a stop.

A turn asks as soon as its answer is complete, about all of its words at once: the text
for people, tasks for other agents and for itself, the texts of inline directives, names
and captions of files. Everything that follows is made of what the hooks left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec
import trio

from actors import names
from actors.errors import ChatError
from actors.hooks.book import (
    LOST_AFTER,
    AskHook,
    AskHooks,
    FinishedTurn,
    HooksAnswered,
    TellHook,
    about,
    patience,
)
from actors.hooks.chain import (
    MOST_SENT,
    Event,
    HookChain,
    HookPart,
    HooksOutcome,
    HookSpec,
    PartKind,
    Verdict,
    unasked,
)
from actors.journal import answers
from actors.journal.answers import Answer, PendingMessage
from actors.journal.outbox import silent_result, spoken
from actors.journal.plan import NOTHING
from actors.messages.inbound import Inbound, Media
from actors.rules.markers.actions import Action, Delegation, SendFile, reworded
from actors.rules.markers.parser import ParsedAnswer, ParserRules
from actors.rules.markers.sanitizer import clean
from runtime.actor.actor import Actor
from runtime.actor.messages import Keyed
from runtime.actor.ref import UNANSWERED
from runtime.actor.reply import Reply
from runtime.errors import KernelError
from runtime.ids import IdSource
from runtime.telemetry.logs import EventLog, Quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from actors.agents.persona import Persona
    from actors.messages.inbound import SentFile
    from actors.protocol import Finished
    from actors.services import Services

LOG = EventLog("hooks")

KINDS: dict[type[Action], PartKind] = {Delegation: "task", SendFile: "file"}
"""Kinds of the texts of inline directives; of all others: `directive`."""


async def asked_about(
    finished: Finished,
    egress: ParserRules,
    inbound: Inbound,
    agent: str,
    asker: tuple[Services, Actor],
) -> Finished:
    """Ask hooks about an answer.

    Args:
        finished: the complete answer with the files of tools, before any of it is
            carried out.
        asker: has the hooks; and the actor that asks, which handles nothing else
            meanwhile.

    Returns:
        The answer in the words that the hooks left; without hooks as it was.
    """
    services, turn = asker
    hooks = services.hooks.sending(inbound.address.connector, agent)
    if not hooks:
        return finished
    parts: list[HookPart] = []

    def note(kind: PartKind, text: str) -> str:
        parts.append(HookPart(kind, text))
        return text

    said = finished.parsed(egress)
    _in_words(finished, said, note)
    ask = (turn, services.ids)
    passed = await ask_about(said.visible, parts, hooks, (inbound, agent), ask)
    _count(passed, inbound, services)
    if passed.cancelled_by:
        return msgspec.structs.replace(
            finished,
            text="",
            said=ParsedAnswer(""),
            delegations=(),
            carried=NOTHING,
            resume="",
            is_withheld=True,
        )
    if not passed.changed_by:
        return _in_words(finished, said, lambda _, text: text)
    visible = clean(passed.text) if passed.text != said.visible else said.visible
    said = msgspec.structs.replace(said, visible=visible)
    # A model that keeps the conversation itself has the old text.
    finished = msgspec.structs.replace(finished, resume="")
    return _in_words(finished, said, passed.worded)


async def ask_about(
    text: str,
    parts: list[HookPart],
    hooks: tuple[HookSpec, ...],
    whose: tuple[Inbound, str],
    asker: tuple[Actor, IdSource],
) -> HooksOutcome:
    """Ask hooks about words that an agent is about to say.

    Args:
        text: for people; blank: there is none.
        whose: what is answered, and by which agent.
        asker: the actor that waits, and names for who asks.
    """
    each_once = tuple(x for x in dict.fromkeys(parts) if x.text.strip())
    if not (each_once or text.strip()):
        return HooksOutcome(text)
    question = AskHooks(
        event="message_sending",
        hooks=hooks,
        about=about(*whose),
        text=text,
        most=MOST_SENT,
        parts=each_once,
    )
    return await outcome_of(question, *asker)


def _in_words(
    finished: Finished, said: ParsedAnswer, word: Callable[[PartKind, str], str]
) -> Finished:
    """Give an answer with other words in all of its parts.

    No hook is asked about thoughts, which may hold what one takes out of the text.
    """

    def act(each: Action) -> Action:
        kind = KINDS.get(type(each), "directive")
        return reworded(each, lambda text: word(kind, text))

    def file(each: SentFile) -> SentFile:
        caption = word("file", each.caption) if each.caption else ""
        name = word("file", each.name)
        return msgspec.structs.replace(each, name=name, caption=caption)

    actions = tuple(map(act, said.actions))
    said = msgspec.structs.replace(said, actions=actions, thought="", named=())
    files = tuple(map(file, finished.carried.files))
    plan = finished.carried.plan
    if plan is not None:
        text = word("task", plan.text)
        plan = msgspec.structs.replace(plan, text=text) if text.strip() else None
    carried = msgspec.structs.replace(finished.carried, files=files, plan=plan)
    return msgspec.structs.replace(
        finished,
        text="",
        said=said,
        delegations=tuple(
            reworded(each, lambda text: word("task", text))
            for each in finished.delegations
        ),
        carried=carried,
    )


def _count(passed: HooksOutcome, inbound: Inbound, services: Services) -> None:
    """Count and log an answer that hooks changed or hold back."""
    if not (passed.cancelled_by or passed.changed_by):
        return
    is_held_back = bool(passed.cancelled_by)
    outcome = "hook_withheld" if is_held_back else "hook_reworded"
    services.metrics.messages.add(1, inbound.address.connector, outcome)
    LOG.info(
        "answer held back by a hook" if is_held_back else "answer changed by a hook",
        correlation_id=inbound.correlation_id,
        hook=passed.cancelled_by or ", ".join(passed.changed_by),
        why=Quoted(passed.reason),
    )


def tell_finished(actor: Actor, answer: Answer, agent: str, services: Services) -> None:
    """Tell hooks that a turn is finished and stored."""
    run = answer.run
    hooks = services.hooks.finished(answer.inbound.address.connector, agent)
    if run is None or not hooks:
        return
    state, reason = answer.settled
    said = spoken(x for x in answer.deliveries if x.agent)
    ended = FinishedTurn(
        state=state,
        reason=reason,
        seconds=run.seconds,
        rounds=run.rounds,
        input_tokens=run.usage.input_tokens,
        output_tokens=run.usage.output_tokens,
        cost=run.cost,
        model=run.model,
    )
    told = TellHook(about=about(answer.inbound, agent), text=said, ended=ended)
    for hook in hooks:
        actor.tell(names.hook(hook.name), told)


def consumed(
    inbound: Inbound, passed: HooksOutcome, services: Services
) -> Answer | None:
    """Make the answer of a hook that takes a message for itself; None: none does."""
    if not passed.consumed_by:
        return None
    services.metrics.messages.add(1, inbound.address.connector, "hook_consumed")
    LOG.info(
        "message consumed by a hook",
        correlation_id=inbound.correlation_id,
        hook=passed.consumed_by,
    )
    answer = answers.notice(inbound, clean(passed.text), ("replied", "consumed"))
    if answer.deliveries[0].text.strip():
        return answer
    return msgspec.structs.replace(answer, deliveries=(silent_result(inbound),))


def worded_reminder(
    inbound: Inbound, passed: HooksOutcome, persona: Persona, services: Services
) -> Answer:
    """Make the answer that says a reminder in the words that hooks left, or nothing."""
    _count(passed, inbound, services)
    if passed.cancelled_by:
        answer = answers.notice(inbound, "", ("replied", "withheld"))
        return answers.without_notice(answer)
    return answers.reminder(msgspec.structs.replace(inbound, text=passed.text), persona)


# Chosen: the hook's own actor knows why it took too long, and reports first.
GRACE = 1.0


class HookAsker(Actor):
    """Asks once, then ends.

    Takes: `AskHooks`, once. Sends: `AskHook` to hooks; `HooksAnswered` to whoever
    asked. Keeps: nothing. Fails: on a bug; whoever asked has a timer of its own. Ends:
    with its answer.
    """

    deadline: ClassVar[float | None] = None  # the hooks' settings say how long

    async def on_receive(self, message: object) -> None:
        """Ask."""
        if not isinstance(message, AskHooks):
            super().on_receive(message)
            return
        passed = await ask_all(self, message)
        if message.reply is not None:
            message.reply.offer(passed)
        else:
            self.tell(message.back, HooksAnswered(message.key, passed))
        self.stop()


async def outcome_of(asked: AskHooks, actor: Actor, ids: IdSource) -> HooksOutcome:
    """Have hooks asked, and wait for what they make of it.

    Args:
        actor: waits; it handles nothing else meanwhile. It does not ask by itself, so
            that a hook's actor that breaks does not break it.
    """
    reply = Reply()
    question = msgspec.structs.replace(asked, reply=reply)
    if actor.tell(names.HOOK_QUESTIONS, Keyed(ids.new(), question)):
        with trio.move_on_after(patience(asked.hooks)):
            passed: HooksOutcome = await reply
            return passed
    return unasked(asked.hooks, asked.text)


async def ask_all(actor: Actor, asked: AskHooks) -> HooksOutcome:
    """Ask hooks about a text and then its parts, and give the result.

    Together the parts have as long as the text alone.

    Args:
        actor: asks; it handles nothing else meanwhile.
    """
    passed = HooksOutcome(asked.text)
    ends_at = trio.current_time() + patience(asked.hooks) - LOST_AFTER / 2
    if asked.text.strip() or not asked.parts:
        passed = await _ask_about(actor, asked, HookPart("", asked.text), ends_at)
    for part in asked.parts:
        if not passed.is_over:
            also = await _ask_about(actor, asked, part, ends_at)
            passed = passed.with_part(part, also)
    return passed


async def _ask_about(
    actor: Actor, asked: AskHooks, part: HookPart, ends_at: float
) -> HooksOutcome:
    about = msgspec.structs.replace(asked.about, part=part.kind)
    chain = HookChain(part.text, asked.most)
    for hook in asked.hooks:
        if not chain.is_over:
            question = AskHook(event=asked.event, about=about, text=chain.passed.text)
            await _ask(actor, hook, question, chain, ends_at)
    return chain.passed


async def _ask(
    actor: Actor, hook: HookSpec, asked: AskHook, chain: HookChain, ends_at: float
) -> None:
    within = min(hook.timeout + GRACE, ends_at - trio.current_time())
    ref = actor.find(names.hook(hook.name))
    why = "it is not running" if ref is None else "there was too much to ask it"
    if ref is not None and within > 0:
        try:
            verdict = await ref.ask(asked, timeout=within)
        except (ChatError, KernelError, *UNANSWERED) as error:
            why = str(error) or type(error).__name__
        else:
            if isinstance(verdict, Verdict):
                chain.take(hook, verdict)
                return
    if asked.event != "message_heard":  # there is nothing to hold back
        chain.fail(hook)
    LOG.warning(
        "hook gave no verdict",
        correlation_id=asked.about.correlation_id,
        hook=hook.name,
        event=asked.event,
        outcome="held back" if chain.is_over else "passed",
        why=why,
    )


class HookedMessage(msgspec.Struct, frozen=True):
    """A message that hooks were asked about."""

    pending: PendingMessage
    answer: Answer | None
    """What settles it; None: the agent is to hear it."""


class SessionHooks:
    """The message of one conversation that hooks are asked about, if any is."""

    __slots__ = ("_asked", "_key", "_services")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._asked: PendingMessage | None = None
        self._key = ""

    @property
    def is_open(self) -> bool:
        """Whether a question is open."""
        return self._asked is not None

    def ask(self, pending: PendingMessage, persona: Persona, session: Actor) -> bool:
        """Have hooks asked about a message; False if there are none to ask."""
        if not self._services.hooks.specs:
            return False  # as most often
        event, hooks = self._hooks_of(pending, persona.name)
        if not hooks:
            return False
        inbound = pending.inbound
        self._asked, self._key = pending, self._services.ids.new()
        asked = AskHooks(
            key=self._key,
            event=event,
            hooks=hooks,
            about=about(inbound, persona.name),
            text=inbound.text,
            most=MOST_SENT,
            back=session.actor_urn,
        )
        if event == "message_sending":
            hooks_failed = unasked(hooks, inbound.text)
        else:
            hooks_failed = unasked((), inbound.text)  # there is nothing to hold back
        lost = HooksAnswered(self._key, hooks_failed)
        if session.tell(names.HOOK_QUESTIONS, Keyed(self._key, asked)):
            session.after(patience(hooks), lost)
        else:
            session.note(lost)
        return True

    def _hooks_of(
        self, pending: PendingMessage, agent: str
    ) -> tuple[Event, tuple[HookSpec, ...]]:
        inbound, past = pending.inbound, pending.state.past
        if inbound.occasion == "said":
            connector = inbound.address.connector
            return "message_sending", self._services.hooks.sending(connector, agent)
        is_known = past.attempts or past.was_running or pending.told
        hooks = () if is_known else self._services.hooks.hearing(inbound, agent)
        return "message_heard", hooks

    def take(self, reply: HooksAnswered, persona: Persona) -> HookedMessage | None:
        """Take the hooks' answer; None: nobody waits for it."""
        pending = self._asked
        if pending is None or reply.key != self._key:
            return None
        self._asked = None
        inbound, passed = pending.inbound, reply.passed
        if inbound.occasion == "said":
            answer = worded_reminder(inbound, passed, persona, self._services)
            return HookedMessage(pending, answer)
        return HookedMessage(pending, consumed(inbound, passed, self._services))

    def drop(self, ids: Collection[str]) -> bool:
        """Take no answer about these messages; True if one was waited for."""
        if self._asked is None or self._asked.inbound.id not in ids:
            return False
        self._asked = None
        return True


HELD_BACK = "[What came along was held back]"


async def worded_files(
    media: Media, inbound: Inbound, asker: tuple[Services, Actor]
) -> Media:
    """Ask hooks about what was read in a message's files.

    Args:
        media: the texts; hooks see no pictures.
        asker: has the hooks; and the actor that asks, which handles nothing else
            meanwhile.

    Returns:
        The texts as the hooks leave them; pictures go if one holds a text back.
    """
    services, turn = asker
    hooks = services.hooks.reading(inbound)
    texts = [x for x in dict.fromkeys((media.text, media.kept)) if x.strip()]
    if not (hooks and texts):
        return media
    asked = AskHooks(
        event="message_received",
        hooks=hooks,
        about=about(inbound, ""),
        text="",
        most=services.limits.max_message_chars,
        parts=tuple(HookPart("file", each) for each in texts),
    )
    passed = await outcome_of(asked, turn, services.ids)
    if passed.cancelled_by:
        LOG.info(
            "files held back by a hook",
            correlation_id=inbound.correlation_id,
            hook=passed.cancelled_by,
            why=Quoted(passed.reason),
        )
        return Media(text=HELD_BACK, kept=HELD_BACK)
    text, kept = (passed.worded("file", x) for x in (media.text, media.kept))
    return msgspec.structs.replace(media, text=text, kept=kept)
