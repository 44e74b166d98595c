"""The asker: asks all hooks about one message, one after the other."""

from __future__ import annotations

from typing import ClassVar

import msgspec
import trio

from actors import names
from actors.errors import ChatError
from actors.hooks.book import LOST_AFTER, AskHook, AskHooks, HooksAnswered, patience
from actors.hooks.chain import (
    HookChain,
    HookPart,
    HooksOutcome,
    HookSpec,
    Verdict,
    unasked,
)
from runtime.actor.actor import Actor
from runtime.actor.messages import Keyed
from runtime.actor.ref import UNANSWERED
from runtime.actor.reply import Reply
from runtime.errors import KernelError
from runtime.ids import IdSource
from runtime.telemetry.logs import EventLog

LOG = EventLog("hooks")

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
