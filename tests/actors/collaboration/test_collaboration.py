"""Proves that the one who counts exchanges goes on counting when it is restarted."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from actors import names
from actors.collaboration.counter import Collaboration
from actors.config.collaboration import CollaborationConfig
from actors.delegation import rulings
from actors.delegation.messages import MayWork
from actors.delegation.pairs import PairExchange, PairRuling
from actors.services import Services
from runtime.actor.actor import Actor
from runtime.supervision.child import ChildSpec
from runtime.supervision.supervisor import Supervisor
from tests.fakes.actors.neighbours import make_services, words
from tests.fakes.company.furnished import changed
from tests.support.puppet import virtual

Clock = trio.testing.MockClock


class Fragile(Collaboration):
    """Breaks to order."""

    def on_receive(self, message: object) -> object:
        if message == "break":
            raise ValueError("broken to order")
        return super().on_receive(message)


def wanted(*numbers: int) -> MayWork:
    return MayWork(
        tuple(
            PairExchange(chat="c", source="anna", target="ben", key=f"k{number}")
            for number in numbers
        )
    )


def services(**config: Any) -> Services:
    return changed(make_services(), collaboration=CollaborationConfig(**config))


async def test_a_restart_forgets_nothing(autojump_clock: Clock) -> None:
    own = services(max_rounds=3)
    spec = ChildSpec(name="collaboration", start=lambda: Fragile(own))
    async with virtual(autojump_clock) as system:
        await system.start_root(Supervisor([spec]), "root")
        ref = system.find("root/collaboration")
        assert ref is not None
        first: tuple[PairRuling, ...] = await ref.ask(wanted(1, 2))
        ref.tell("break")
        second: tuple[PairRuling, ...] = await ref.ask(wanted(3, 4))
    assert [each.is_allowed for each in (*first, *second)] == [True, True, True, False]


async def test_what_is_quiet_is_swept(autojump_clock: Clock) -> None:
    counting = Collaboration(services(cooldown=10.0))
    async with virtual(autojump_clock) as system:
        ref = system.spawn(counting)
        await ref.ask(wanted(1))
        assert len(counting._limiter) == 1
        await trio.sleep(61)
        assert len(counting._limiter) == 0


class Asker(Actor):
    """Asks whether some exchanges may be."""

    async def on_receive(self, message: Any) -> object:
        return await rulings.rule(self, message.exchanges, words())


def test_only_persons_words_begin_anew() -> None:
    said = words()
    of_program, of_clock = words(is_bot=True), words(occasion="cron")
    begun = [
        rulings.exchange(each, "anna", "ben", "k").begun_by
        for each in (said, of_program, of_clock)
    ]
    assert begun == [said.id, "", ""]


async def test_where_nobody_rules_nobody_may(autojump_clock: Clock) -> None:
    async with virtual(autojump_clock) as system:
        asker = system.spawn(Asker())
        unruled: tuple[PairRuling, ...] = await asker.ask(wanted(1, 2))
        system.spawn(Collaboration(services()), name=names.COLLABORATION)
        ruled: tuple[PairRuling, ...] = await asker.ask(wanted(1, 2))
    assert [each.is_allowed for each in (*unruled, *ruled)] == [False] * 2 + [True] * 2


@pytest.mark.parametrize("given", [{"max_rounds": -1}, {"timeout": 0}, {"tools": ""}])
def test_the_settings_have_bounds(given: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(given, CollaborationConfig)
