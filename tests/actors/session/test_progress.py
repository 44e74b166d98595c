"""Proves that a turn's signs of life come at their pace, whoever lets it go on."""

from __future__ import annotations

import trio
import trio.testing

from actors.config.presence import TYPING_EVERY
from actors.messages.deliveries import Abilities
from actors.session.progress import ProgressSignals, RenewTyping
from actors.transport import Account
from tests.fakes.actors.neighbours import ROOM, make_services, words
from tests.fakes.company.furnished import changed
from tests.support.puppet import Puppet, virtual

Clock = trio.testing.MockClock


async def test_typing_is_due_once_though_two_calls_went_on_at_once(
    autojump_clock: Clock,
) -> None:
    session = Puppet()
    account = Account(Abilities(shows_typing=True))
    async with virtual(autojump_clock) as system:
        given = changed(make_services(), accounts={ROOM.connector: account})
        ref = system.spawn(session)
        signals = ProgressSignals("t1", words(), session, "anna", given)

        def go_on(_: Puppet) -> None:
            signals.begin()
            signals.rest()
            signals.resume()
            signals.resume()

        ref.tell(go_on)
        await trio.sleep(1.5 * TYPING_EVERY)
        due = [x for x in session.log if isinstance(x, RenewTyping)]
        assert due == [RenewTyping("t1")]
