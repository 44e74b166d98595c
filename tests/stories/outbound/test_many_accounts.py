"""Each account of a transport is supervised by itself: none takes another along."""

from __future__ import annotations

from collections.abc import Mapping

import trio
import trio.testing

from actors.transport import Ingress, Listening
from tests.fakes.company.company import Cast, Platform, at_rest, open_company, until

Clock = trio.testing.MockClock


class Account:
    """One account's listener.

    Args:
        platform: whose people it hears; none: it fails at once.
    """

    def __init__(self, platform: Platform | None) -> None:
        self._platform = platform
        self.starts: list[float] = []

    async def listen(self, ingress: Ingress) -> None:
        await trio.lowlevel.checkpoint()
        self.starts.append(trio.current_time())
        if self._platform is None:
            raise RuntimeError("nothing that is meant to happen")
        await self._platform.listen(ingress)


class Brief(Account):
    """One that is no longer let in."""

    async def listen(self, ingress: Ingress) -> None:
        del ingress
        await trio.sleep(1)
        self.starts.append(trio.current_time())


class Crowd(Platform):
    """A platform with three accounts: one fails, one ends, one goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.failing, self.brief = Account(None), Brief(None)
        self.sound = Account(self)
        self.trouble = ""

    @property
    def listeners(self) -> Mapping[str, Listening]:
        return {"anna": self.failing, "ben": self.brief, "cleo": self.sound}


async def test_an_account_that_fails_is_tried_again_alone(
    autojump_clock: Clock,
) -> None:
    crowd = Crowd()
    cast = Cast(platform=crowd)
    async with open_company(autojump_clock, cast) as system:
        crowd.write("hello")
        await at_rest(cast)
        began = trio.current_time()
        await trio.sleep(3600)
        assert len(crowd.sound.starts) == len(crowd.brief.starts) == 1
        # Ten times in its first minute, then once in each.
        assert 60 <= len(crowd.failing.starts) <= 90
        crowd.write("still there?")
        await at_rest(cast)
        restarts = system.statistics().restarts
    assert trio.current_time() - began < 3700
    assert crowd.said() == ["anna: anna heard hello", "anna: anna heard still there?"]
    assert {kind for kind, _ in restarts} == {"Listener"}


async def test_an_account_can_be_killed_and_hears_again(autojump_clock: Clock) -> None:
    crowd = Crowd()
    cast = Cast(platform=crowd)
    async with open_company(autojump_clock, cast) as system:
        crowd.write("one")
        await at_rest(cast)
        listener = system.find("callboard/connectors/fake/listeners/cleo/listener")
        assert listener is not None
        listener.kill()
        await until(lambda: len(crowd.sound.starts) == 2)
        crowd.write("two")
        await at_rest(cast)
    assert crowd.said() == ["anna: anna heard one", "anna: anna heard two"]
