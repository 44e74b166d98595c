"""Asks hooks about answers before anything comes of them; tells of finished turns.

The turn asks as soon as its answer is complete, about all of its words at once: the
text for people, tasks for other agents and for itself, the texts of inline directives,
names and captions of files. Everything that follows is made of what the hooks left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import names
from actors.hooks.asker import outcome_of
from actors.hooks.book import AskHooks, FinishedTurn, TellHook, about
from actors.hooks.chain import (
    MOST_SENT,
    HookPart,
    HooksOutcome,
    HookSpec,
    PartKind,
)
from actors.journal import answers
from actors.journal.outbox import silent_result, spoken
from actors.journal.plan import NOTHING
from actors.rules.markers.actions import Action, Delegation, SendFile, reworded
from actors.rules.markers.parser import ParsedAnswer, ParserRules
from actors.rules.markers.sanitizer import clean
from runtime.telemetry.logs import EventLog, Quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.agents.persona import Persona
    from actors.journal.answers import Answer
    from actors.messages.inbound import Inbound, SentFile
    from actors.protocol import Finished
    from actors.services import Services
    from runtime.actor.actor import Actor
    from runtime.ids import IdSource

    Word = Callable[[PartKind, str], str]

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


def _in_words(finished: Finished, said: ParsedAnswer, word: Word) -> Finished:
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
