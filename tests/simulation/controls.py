"""Companies with one deliberate mistake each: the simulation must find every one.

A harness that cannot fail proves nothing. Each part here breaks one promise in the
way in which such promises are broken; the checker that must notice is named with it.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from actors.config.schedule import SchedulerConfig
from actors.messages.inbound import ModelRequest
from actors.models.limiter import Limiter
from actors.protocol import AcquirePermit
from actors.rules.groups.routes import Binding, routing_table
from actors.tree import Company
from runtime.store.port import Done
from runtime.store.rows import Commit, Committed, StoredDelivery, StoredMessage
from tests.fakes.company.furnished import changed
from tests.simulation.edges.disk import SimulatedStore
from tests.simulation.edges.edges import SimulatedModel
from tests.simulation.faults import FaultClass
from tests.simulation.hangs import with_hang
from tests.simulation.run import Outcome, run_seed
from tests.simulation.world import Parts


class HastyStore(SimulatedStore):
    """Says that a message is accepted before it is on the disk."""

    def submit(self, commit: Commit, done: Done) -> None:
        if commit.accepts and not commit.settles:
            super().submit(commit, _forget)
            self._tell(done, Committed(tuple(1 for _ in commit.accepts)))
        else:
            super().submit(commit, done)


class ForgetfulStore(SimulatedStore):
    """Does not know a message again that a platform hands in twice."""

    def submit(self, commit: Commit, done: Done) -> None:
        accepts = tuple(
            msgspec.structs.replace(row, platform_id=f"{row.platform_id} {row.id}")
            for row in commit.accepts
        )
        super().submit(msgspec.structs.replace(commit, accepts=accepts), done)


class BraveStore(SimulatedStore):
    """Swallows that the disk is full."""

    def _flush(self, commit: Commit, done: Done) -> None:
        if self._disk.is_full:
            rows = (commit.accepts, commit.appends, commit.deliveries)
            made_up = (tuple(range(1, len(each) + 1)) for each in rows)
            self._tell(done, Committed(*made_up))
        else:
            super()._flush(commit, done)


class UnmarkedStore(SimulatedStore):
    """Does not say what was settled meanwhile when something is about to be said."""

    def _flush(self, commit: Commit, done: Done) -> None:
        if commit.send_attempts:
            self._tell(done, Committed())
        else:
            super()._flush(commit, done)


class UnreceiptedStore(SimulatedStore):
    """Loses every third receipt and says that it is stored."""

    lost = 0

    def _flush(self, commit: Commit, done: Done) -> None:
        self.lost += bool(commit.receipts)
        if commit.receipts and self.lost % 3 == 0:
            self._tell(done, Committed())
        else:
            super()._flush(commit, done)


class OneQueueLimiter(Limiter):
    """Has one queue and one lot of permits for all models."""

    def on_receive(self, message: object) -> object:
        if isinstance(message, AcquirePermit):
            message = msgspec.structs.replace(message, model="")
        return super().on_receive(message)


class BackwardStore(SimulatedStore):
    """Gives what was left unanswered, or unsaid, newest first."""

    async def unsettled(
        self, after: int = 0, limit: int = 1000
    ) -> tuple[StoredMessage, ...]:
        return (await super().unsettled(after, limit))[::-1]

    async def undelivered(
        self, connector: str | None = None, after: int = 0, limit: int = 1000
    ) -> tuple[StoredDelivery, ...]:
        return (await super().undelivered(connector, after, limit))[::-1]


class IndiscreetModel(SimulatedModel):
    """Tells everybody what the one before said."""

    overheard = ""

    def words_for(self, request: ModelRequest) -> str:
        words = super().words_for(request)
        told, self.overheard = self.overheard, words
        return f"{words}, as I told somebody: {told[:80]}"


ALL_ROOMS = Binding("anna", kind="group", activation="always")


def talkative(company: Company) -> Company:
    """Have an agent answer all that is said in rooms."""
    agents = company.routes.agents.values()
    table = routing_table(agents, [ALL_ROOMS], "anna")
    return replace(company, routes=table)


def deaf(company: Company) -> Company:
    """Have an agent hear nothing that is meant for it."""
    heard = tuple(each for each in company.personas if each.name != "ben")
    return replace(company, personas=heard)


def idle(company: Company) -> Company:
    """Have nobody see to what is due."""
    services = changed(company.services, scheduler=SchedulerConfig(is_on=False))
    return replace(company, services=services)


# Chosen: longer than three attempts take; what is lost need not be waited for longer.
SOON = 900.0


class Control(msgspec.Struct, frozen=True):
    """One mistake, where it shows, and who must find it."""

    parts: Parts
    faults: frozenset[FaultClass]
    found_by: str
    is_beside_a_hang: bool = False
    """Whether it shows beside a model that hangs (`hangs.py`)."""

    def play(self, seed: int, *, is_right: bool = False) -> Outcome:
        """Play a seed with the mistake; right: without it."""
        parts = None if is_right else self.parts
        if self.is_beside_a_hang:
            return with_hang(seed, parts)
        return run_seed(seed, parts, self.faults)


CONTROLS: dict[str, Control] = {
    "acknowledges before it is stored": Control(
        Parts(store=HastyStore, liveness=SOON),
        frozenset({"crash", "disk_slow", "disk_full"}),
        "I1",
    ),
    "does not know duplicates": Control(
        Parts(store=ForgetfulStore, liveness=SOON), frozenset({"duplicate"}), "I2"
    ),
    "swallows a full disk": Control(
        Parts(store=BraveStore, liveness=SOON), frozenset({"disk_full"}), "I1"
    ),
    "loses receipts": Control(
        Parts(store=UnreceiptedStore, liveness=SOON), frozenset({"crash"}), "I2"
    ),
    "says what was dropped": Control(
        Parts(store=UnmarkedStore, liveness=SOON),
        frozenset({"operator", "send_error"}),
        "I11",
    ),
    "answers the newest first": Control(
        Parts(store=BackwardStore), frozenset({"crash", "send_slow"}), "I3"
    ),
    "answers what is meant for nobody": Control(
        Parts(tamper=talkative), frozenset[FaultClass](), "R3"
    ),
    "does not hear who is meant": Control(
        Parts(tamper=deaf), frozenset[FaultClass](), "R2"
    ),
    "lets the time of appointments pass": Control(
        Parts(tamper=idle, liveness=SOON), frozenset[FaultClass](), "I10"
    ),
    "lets a model that hangs keep others waiting": Control(
        Parts(limiter=OneQueueLimiter),
        frozenset({"model_hang"}),
        "I8",
        is_beside_a_hang=True,
    ),
    "repeats words elsewhere": Control(
        Parts(model=IndiscreetModel), frozenset[FaultClass](), "I4"
    ),
}


def _forget(_outcome: object) -> None:
    """Nobody is told a second time."""
