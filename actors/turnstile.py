"""The permit of one attempt: asked for, held, lent to others, asked for again.

While a turn does nothing but wait for people, others may run in its place. The
limiter knows a session by its name, so whatever is given back twice is given back
once, and what is given back at the end was held or waited for until then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from actors import names
from actors.protocol import Acquire, Release

if TYPE_CHECKING:
    from runtime.actor import Actor
    from runtime.reply import Reply

State = Literal["outside", "asked", "held", "lent", "asked_again", "kept"]


class Turnstile:
    """What a session knows of its permit, for one attempt.

    Args:
        session: who holds it.
        turn_id: for which attempt.
        priority: of the message, 1 to 10.
    """

    __slots__ = ("_go_on", "_priority", "_session", "_state", "_turn_id")

    def __init__(self, session: Actor, turn_id: str, priority: int) -> None:
        self._session = session
        self._turn_id = turn_id
        self._priority = priority
        self._state: State = "outside"
        self._go_on: list[Reply] = []

    def ask(self) -> bool:
        """Ask for the permit; give whether there is anybody to ask."""
        self._state = "asked"
        return self._acquire(is_under_way=False)

    def granted(self) -> bool:
        """Take the permit; give whether the attempt may begin now."""
        if self._state == "asked":
            self._state = "held"
            return True
        if self._state == "asked_again":
            self._state = "held"
            self._answer(may=True)
        return False  # a second permit changes nothing

    def lend(self) -> None:
        """Give the permit back for a while: only people are waited for."""
        if self._state == "held":
            self._state = "lent"
            self._session.tell(names.LIMITER, Release(self._session.actor_urn))

    def go_on(self, reply: Reply) -> None:
        """Answer True as soon as the permit is held, False if it never will be."""
        if self._state == "lent":
            self._state = "asked_again"
            if not self._acquire(is_under_way=True):
                self._state = "lent"
                reply.offer(False)  # noqa: FBT003  the answer itself
                return
        self._go_on.append(reply)
        if self._state != "asked_again":
            self._answer(may=self._state == "held")

    def keep(self) -> None:
        """Leave the permit to the limiter, which takes back what the dead hold.

        For a session that ends: its turn may run a moment longer, and nobody else is
        to run in its place meanwhile.
        """
        if self._state == "held":
            self._state = "kept"

    def leave(self) -> None:
        """Give the permit back, or the wish for one, for good."""
        if self._state == "kept":
            self._answer(may=False)
            return
        self._state = "outside"
        self._answer(may=False)
        self._session.tell(names.LIMITER, Release(self._session.actor_urn))

    def _acquire(self, *, is_under_way: bool) -> bool:
        session = self._session
        wanted = Acquire(
            session.actor_urn,
            self._turn_id,
            session.actor_ref,
            self._priority,
            is_under_way,
        )
        return session.tell(names.LIMITER, wanted)

    def _answer(self, *, may: bool) -> None:
        waiting, self._go_on = self._go_on, []
        for reply in waiting:
            reply.offer(may)
