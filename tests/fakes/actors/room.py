"""A session in a room of its own: probes for neighbours, stores that misbehave."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio
import trio.testing

from actors import names
from actors.approvals.board import ApprovalBoard
from actors.config.limits import LimitsConfig
from actors.config.sessions import BufferingConfig
from actors.journal.commits import as_accept
from actors.messages.inbound import Inbound
from actors.messages.keys import session_key
from actors.protocol import (
    AcquirePermit,
    Deliver,
    Finished,
    Hear,
    PermitGranted,
    StartTurn,
    TurnEnded,
)
from actors.session.session import Session
from actors.transport import Account
from runtime.actor.ref import ActorRef
from runtime.store.port import Done
from runtime.store.rows import Commit, Settle
from runtime.supervision.child import ChildSpec
from runtime.supervision.supervisor import Supervisor, SupervisorConfig
from runtime.system import ActorSystem
from tests.fakes.actors.neighbours import anna, make_services, of_kind, probe, words
from tests.fakes.company.furnished import changed
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import virtual

Clock = trio.testing.MockClock


UNLESS_TOLD = BufferingConfig()


class HeldStore(MemoryStore):
    """Stores at once, but holds back the news of it while it is told to."""

    is_held = False

    def __init__(self) -> None:
        super().__init__()
        self.held: list[Any] = []

    def submit(self, commit: Commit, done: Done) -> None:
        def tell(outcome: Any) -> None:
            if self.is_held:
                self.held.append(lambda: done(outcome))
            else:
                done(outcome)

        super().submit(commit, tell)

    def let_go(self) -> None:
        self.is_held = False
        for tell in self.held:
            tell()


class RefusingStore(MemoryStore):
    """Never stores what a test picks out; keeps what it settled besides.

    Args:
        refuses: whether it refuses a commit, each time it comes.
        error: with what; one that trying again does not cure.
    """

    def __init__(self, refuses: Callable[[Commit], bool], error: Exception) -> None:
        super().__init__()
        self._refuses = refuses
        self._error = error
        self.refused = 0
        self.settled: list[Settle] = []

    def submit(self, commit: Commit, done: Done) -> None:
        if self._refuses(commit):
            self.refused += 1
            trio.lowlevel.current_trio_token().run_sync_soon(done, self._error)
            return
        self.settled.extend(commit.settles)
        super().submit(commit, done)


class Room:
    """A session and probes for all whom it speaks to."""

    def __init__(
        self, system: ActorSystem, store: MemoryStore, board: ApprovalBoard
    ) -> None:
        self.system = system
        self.board = board
        self.store = store
        self.limiter = probe(system, names.LIMITER)
        self.agent = probe(system, names.agent("anna"))
        self.router = probe(system, names.ROUTER)
        self.connector = probe(system, names.connector("fake"))
        self.seen = 0

    @property
    def ref(self) -> ActorRef:
        found = self.system.find("root/session")
        assert found is not None
        return found

    async def hear(self, *inbounds: Inbound) -> None:
        for each in inbounds:
            await self.store.commit(Commit(at=1.0, accepts=(as_accept(each, 1.0),)))
            self.ref.tell(Hear(each, arrived_at=trio.current_time()))
        await self.rest()

    async def look(self) -> None:
        """Let people see what was asked, and time pass until they answer."""
        await self.rest()
        for each in of_kind(self.connector, Deliver):
            self.board.note_shown(each.delivery.id, trio.current_time())
        await trio.sleep(1.0)

    async def rest(self) -> None:
        for _ in range(3):
            await trio.testing.wait_all_tasks_blocked()

    async def grant(self) -> StartTurn:
        """Grant the newest wish; give the turn that starts."""
        self.ref.tell(PermitGranted(of_kind(self.limiter, AcquirePermit)[-1].turn_id))
        await self.rest()
        start: StartTurn = of_kind(self.agent, StartTurn)[-1]
        return start

    async def answer(self, text: str = "yes") -> StartTurn:
        start = await self.grant()
        self.ref.tell(TurnEnded(start.turn_id, Finished(text)))
        await self.rest()
        return start

    def said(self) -> list[str]:
        return [each.delivery.text for each in of_kind(self.connector, Deliver)]


@asynccontextmanager
async def open_room(
    clock: Clock,
    store: MemoryStore | None = None,
    accounts: dict[str, Account] | None = None,
    buffering: BufferingConfig = UNLESS_TOLD,
    delegates: tuple[str, ...] = (),
    **limits: Any,
) -> AsyncGenerator[Room]:
    store = store or MemoryStore()
    services = make_services(store, LimitsConfig(notice_after=0.0, **limits))
    services = changed(services, accounts=accounts or {}, buffering=buffering)
    persona = anna(delegates=delegates)
    key = session_key(words(), "anna", "chat")
    spec = ChildSpec(name="session", start=lambda: Session(key.text, persona, services))
    async with virtual(clock) as system:
        room = Room(system, store, services.board)
        config = SupervisorConfig(intensity=9)
        await system.start_root(Supervisor((spec,), config), "root")
        yield room
