"""Asks all hooks about one message, one after the other, beside everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from actors import names
from actors.errors import ChatError
from actors.hooking import AskHook, AskHooks, HooksSaid
from actors.rules.hooking import Chain, Verdict
from runtime.actor import Actor
from runtime.errors import KernelError
from runtime.logs import EventLog
from runtime.ref import UNANSWERED

if TYPE_CHECKING:
    from actors.rules.hooking import HookSpec, Passed

LOG = EventLog("hooks")

# Chosen: a hook's own actor knows why it took too long, and is to say so first.
GRACE = 1.0


class HookAsker(Actor):
    """Asks once, then ends.

    Takes: `AskHooks`, once.
    Sends: `AskHook` to hooks; `HooksSaid` to whoever asked.
    Keeps: nothing.
    Fails: on a bug; whoever asked has a clock of its own.
    Ends: with its answer.
    """

    deadline: ClassVar[float | None] = None  # the hooks' settings say how long

    async def on_receive(self, message: object) -> None:
        """Ask."""
        if not isinstance(message, AskHooks):
            super().on_receive(message)
            return
        self.tell(message.back, HooksSaid(message.key, await ask_all(self, message)))
        self.stop()


async def ask_all(actor: Actor, asked: AskHooks) -> Passed:
    """Ask hooks one after the other, and give what came of it.

    Args:
        actor: on whose behalf; it handles nothing else meanwhile.
        asked: whom, and about what.
    """
    chain = Chain(asked.text, asked.most)
    for hook in asked.hooks:
        if not chain.is_over:
            await _ask(actor, hook, asked, chain)
    return chain.passed


async def _ask(actor: Actor, hook: HookSpec, asked: AskHooks, chain: Chain) -> None:
    question = AskHook(event=asked.event, about=asked.about, text=chain.passed.text)
    why = "it is not running"
    ref = actor.find(names.hook(hook.name))
    if ref is not None:
        try:
            verdict = await ref.ask(question, timeout=hook.timeout + GRACE)
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
