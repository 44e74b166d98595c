"""The asker: asks all hooks about one message, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from actors import names
from actors.errors import ChatError
from actors.hooks.book import AskHook, AskHooks, HooksAnswered
from actors.hooks.chain import HookChain, Verdict
from runtime.actor.actor import Actor
from runtime.actor.ref import UNANSWERED
from runtime.errors import KernelError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from actors.hooks.chain import HooksOutcome, HookSpec

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
        self.tell(
            message.back, HooksAnswered(message.key, await ask_all(self, message))
        )
        self.stop()


async def ask_all(actor: Actor, asked: AskHooks) -> HooksOutcome:
    """Ask hooks one after the other, and give the result.

    Args:
        actor: asks; it handles nothing else meanwhile.
        asked: which hooks, and about what.
    """
    chain = HookChain(asked.text, asked.most)
    for hook in asked.hooks:
        if not chain.is_over:
            await _ask(actor, hook, asked, chain)
    return chain.passed


async def _ask(actor: Actor, hook: HookSpec, asked: AskHooks, chain: HookChain) -> None:
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
