"""Proves that a turn's signs of life come at their pace, whoever lets it go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
import trio.testing

from actors.account import Account
from actors.deliveries import Abilities
from actors.signals import Signals, SignDue
from tests.fakes.furnished import changed
from tests.fakes.neighbours import ROOM, make_services, words
from tests.puppet import Puppet, virtual

if TYPE_CHECKING:
    Clock = trio.testing.MockClock


async def test_typing_is_due_once_though_two_calls_went_on_at_once(
    autojump_clock: Clock,
) -> None:
    session = Puppet()
    account = Account(Abilities(shows_typing=True))
    async with virtual(autojump_clock) as system:
        given = changed(make_services(), accounts={ROOM.connector: account})
        ref = system.spawn(session)
        signals = Signals("t1", words(), session, "anna", given)

        def go_on(_: Puppet) -> None:
            signals.begin()
            signals.rest()
            signals.go_on()
            signals.go_on()

        ref.tell(go_on)
        await trio.sleep(1.5 * given.presence.typing_every)
        assert [x for x in session.log if isinstance(x, SignDue)] == [SignDue("t1")]
