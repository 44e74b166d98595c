"""Proves that the operator kills who may be killed, on record, and nobody else."""

from __future__ import annotations

import msgspec
import trio
import trio.testing

from actors import names
from actors.journal import records
from actors.journal.records import AuditRecord
from actors.operations import warden as killing
from actors.operations.warden import DOWN, KillActor, Killed, Warden
from runtime.actor.ref import ActorRef
from runtime.errors import StoreUnavailableError
from runtime.store.rows import Commit, Committed
from runtime.supervision.child import ChildSpec
from runtime.supervision.restarts import Backoff
from runtime.supervision.supervisor import Supervisor, SupervisorConfig
from runtime.system import ActorSystem
from runtime.telemetry.logs import Redactor
from runtime.telemetry.metrics import Metrics
from runtime.testing import CrashError
from tests.fakes.actors.neighbours import make_services
from tests.fakes.company.furnished import changed
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import Puppet, virtual

Clock = trio.testing.MockClock

ANNA = f"{names.AGENTS}/anna/agent"
CHAT = f"{names.sessions('anna')}/anna/fake/room-secret//zoe"


class SickStore(MemoryStore):
    """Takes no commit."""

    async def commit(self, commit: Commit) -> Committed:
        del commit
        raise StoreUnavailableError("the disk is full")


def open_warden(
    system: ActorSystem, store: MemoryStore, metrics: Metrics | None = None
) -> ActorRef:
    redact = Redactor(["secret"]).clean
    services = changed(make_services(store, metrics=metrics), redact=redact)
    return system.spawn(Warden(services), name=names.WARDEN)


async def kill(warden: ActorRef, name: str, by: str = "web login 1") -> Killed:
    killed: Killed = await warden.ask(KillActor(name, by))
    return killed


async def on_record(store: MemoryStore) -> list[AuditRecord]:
    rows = await store.records(records.AUDIT)
    return [msgspec.json.decode(row.body, type=AuditRecord) for row in rows]


async def test_who_may_be_killed_is_killed(autojump_clock: Clock) -> None:
    metrics = Metrics()
    async with virtual(autojump_clock) as system:
        warden = open_warden(system, MemoryStore(), metrics)
        anna = system.spawn(Puppet(), name=ANNA)
        killed = await kill(warden, ANNA)
        assert killed == Killed(
            is_done=True, text=f"{ANNA} is killed; its supervisor restarts it"
        )
        await trio.testing.wait_all_tasks_blocked()
        assert not anna.is_alive()
    assert b'callboard_actors_killed_total{kind="Puppet"} 1.0' in metrics.render()


async def test_it_is_on_record_who_did_it_without_secrets(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    async with virtual(autojump_clock) as system:
        warden = open_warden(system, store)
        system.spawn(Puppet(), name=CHAT)
        assert (await kill(warden, CHAT)).is_done
    (told,) = await on_record(store)
    assert (told.channel, told.sender_id) == ("operator", "web login 1")
    assert (told.status, told.reason) == ("killed", "by hand")
    assert told.input == f"kill {CHAT}".replace("secret", "***")


async def test_who_may_not_be_killed_lives_on(autojump_clock: Clock) -> None:
    store = MemoryStore()
    async with virtual(autojump_clock) as system:
        warden = open_warden(system, store)
        keeper = system.spawn(Puppet(), name=names.KEEPER)
        killed = await kill(warden, names.KEEPER)
        assert killed == Killed(is_done=False, text=killing.STORE)
        assert keeper.is_alive()
    assert await on_record(store) == []


async def test_who_is_not_there_is_not_killed(autojump_clock: Clock) -> None:
    async with virtual(autojump_clock) as system:
        killed = await kill(open_warden(system, MemoryStore()), ANNA)
        assert not killed.is_done
        assert "there is no such actor now" in killed.text


async def open_anna(system: ActorSystem) -> ActorRef:
    """Start an agent with a supervisor that restarts it."""
    specs = [ChildSpec(name="agent", start=Puppet)]
    config = SupervisorConfig(backoff=Backoff(first=2.0))
    system.spawn(Supervisor(specs, config), name=f"{names.AGENTS}/anna")
    await trio.sleep(1)
    anna = system.find(ANNA)
    assert anna is not None
    return anna


async def test_who_is_down_is_not_killed_and_not_counted(
    autojump_clock: Clock,
) -> None:
    metrics, store = Metrics(), MemoryStore()
    async with virtual(autojump_clock) as system:
        anna = await open_anna(system)
        warden = open_warden(system, store, metrics)
        assert anna.crash(CrashError("by itself"))
        await trio.testing.wait_all_tasks_blocked()
        assert anna.is_alive()
        assert not anna.crash(CrashError("nobody is there"))
        assert await kill(warden, ANNA) == Killed(is_done=False, text=DOWN)
        assert await on_record(store) == []
        await trio.sleep(10)  # it is restarted
        assert (await kill(warden, ANNA)).is_done
    assert b'callboard_actors_killed_total{kind="Puppet"} 1.0' in metrics.render()


class DyingStore(MemoryStore):
    """Somebody fails while it writes."""

    def __init__(self) -> None:
        super().__init__()
        self.victim: ActorRef | None = None

    async def commit(self, commit: Commit) -> Committed:
        if self.victim is not None:
            self.victim.crash(CrashError("meanwhile"))
        return await super().commit(commit)


async def test_who_fails_while_it_is_put_on_record_is_not_counted(
    autojump_clock: Clock,
) -> None:
    metrics, store = Metrics(), DyingStore()
    async with virtual(autojump_clock) as system:
        store.victim = await open_anna(system)
        warden = open_warden(system, store, metrics)
        assert await kill(warden, ANNA) == Killed(is_done=False, text=DOWN)
    assert b"callboard_actors_killed_total{" not in metrics.render()


async def test_not_again_and_again(autojump_clock: Clock) -> None:
    async with virtual(autojump_clock) as system:
        warden = open_warden(system, MemoryStore())
        told: list[bool] = []
        for _ in range(killing.MOST_OF_ONE + 1):
            anna = system.spawn(Puppet(), name=ANNA)
            told.append((await kill(warden, ANNA)).is_done)
            if anna.is_alive():
                await anna.stop()
        assert told == [True] * killing.MOST_OF_ONE + [False]
        await trio.sleep(killing.PERIOD + 1)
        system.spawn(Puppet(), name=ANNA)
        assert (await kill(warden, ANNA)).is_done


async def test_without_a_record_nobody_is_killed(autojump_clock: Clock) -> None:
    async with virtual(autojump_clock) as system:
        warden = open_warden(system, SickStore())
        anna = system.spawn(Puppet(), name=ANNA)
        killed = await kill(warden, ANNA)
        assert not killed.is_done
        assert "the disk is full" in killed.text
        assert anna.is_alive()
