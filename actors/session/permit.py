"""The permit of one turn, as a lease from the limiter.

The lease is taken by the id of the turn. While the turn does nothing but wait for
people it rests, and another turn may run in its place; before it goes on, it takes the
permit again. The limiter knows the permit by session and turn: to release one twice
does no harm.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from actors import names
from actors.messages.inbound import Inbound
from actors.protocol import AcquirePermit, ReleasePermit
from runtime.actor.actor import Actor
from runtime.actor.reply import Reply

State = Literal["none", "requested", "held", "resting", "requested_again", "kept"]


class PermitLease(msgspec.Struct, eq=False):
    """What a session knows of the permit of one attempt.

    Args:
        session: who holds it.
        turn_id: the attempt.
        inbound: the message that it answers.
        model: that it will ask.
        is_suspect: see `AcquirePermit`.
    """

    _session: Actor
    _turn_id: str
    _inbound: Inbound
    _model: str
    is_suspect: bool = False
    _state: State = "none"
    _replies: list[Reply] = msgspec.field(default_factory=list)

    @property
    def is_resting(self) -> bool:
        """Whether the turn waits for people, and another may run in its place."""
        return self._state == "resting"

    def acquire(self) -> bool:
        """Ask for the permit; give whether there is a limiter to ask."""
        self._state = "requested"
        return self._ask(is_under_way=False)

    def granted(self) -> bool:
        """Take the permit; give whether the attempt may begin now.

        False for an attempt that resumes, and for a second permit.
        """
        if self._state == "requested":
            self._state = "held"
            return True
        if self._state == "requested_again":
            self._state = "held"
            self._answer(may=True)
        return False

    def rest(self) -> None:
        """Give the permit back while the turn only waits for people."""
        if self._state == "held":
            self._state = "resting"
            self._give_back()

    def resume(self, reply: Reply) -> None:
        """Answer True as soon as the permit is held, False if it never will be."""
        if self._state == "resting":
            self._state = "requested_again"
            if not self._ask(is_under_way=True):
                self._state = "resting"
                reply.offer(False)  # noqa: FBT003  the answer itself
                return
        self._replies.append(reply)
        if self._state != "requested_again":
            self._answer(may=self._state == "held")

    def keep(self) -> None:
        """Leave the permit to the limiter, which takes back what the dead hold.

        For a session that ends: its turn may run a moment longer, and no other turn is
        to run in its place meanwhile.
        """
        if self._state == "held":
            self._state = "kept"

    def release(self) -> None:
        """Give the permit back for good, or withdraw the request for it."""
        is_kept = self._state == "kept"
        self._state = self._state if is_kept else "none"
        self._answer(may=False)
        if not is_kept:
            self._give_back()

    def _give_back(self) -> None:
        back = ReleasePermit(self._session.actor_urn, self._turn_id)
        self._session.tell(names.LIMITER, back)

    def _ask(self, *, is_under_way: bool) -> bool:
        session = self._session
        wanted = AcquirePermit(
            session.actor_urn,
            self._turn_id,
            session.actor_ref,
            self._inbound.priority,
            is_under_way,
            self._model,
            sender=(self._inbound.address.connector, self._inbound.sender_id),
            caller=self._inbound.caller,
            is_suspect=self.is_suspect,
        )
        return session.tell(names.LIMITER, wanted)

    def _answer(self, *, may: bool) -> None:
        replies, self._replies = self._replies, []
        for reply in replies:
            reply.offer(may)
