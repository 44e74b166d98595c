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
    from actors.rules.hooking import HookSpec

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
        chain = Chain(message.text, message.most)
        for hook in message.hooks:
            if not chain.is_over:
                await self._ask(hook, message, chain)
        self.tell(message.back, HooksSaid(message.key, chain.passed))
        self.stop()

    async def _ask(self, hook: HookSpec, asked: AskHooks, chain: Chain) -> None:
        question = AskHook(event=asked.event, about=asked.about, text=chain.passed.text)
        why = "it is not running"
        ref = self.find(names.hook(hook.name))
        if ref is not None:
            try:
                verdict = await ref.ask(question, timeout=hook.timeout + GRACE)
            except (ChatError, KernelError, *UNANSWERED) as error:
                why = str(error) or type(error).__name__
            else:
                if isinstance(verdict, Verdict):
                    chain.take(hook, verdict)
                    return
        chain.fail(hook)
        LOG.warning(
            "hook gave no verdict",
            correlation_id=asked.about.correlation_id,
            hook=hook.name,
            event=asked.event,
            outcome="held back" if chain.is_over else "passed",
            why=why,
        )
