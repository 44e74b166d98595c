"""Parts that crash or hang while hooks are asked lose nothing, and come back."""

from __future__ import annotations

import pytest
import trio.testing

from actors import tree as supervisor
from actors.hooks.asker import HookAsker
from actors.hooks.book import AskHook
from actors.hooks.chain import LONGEST_PAUSE, Trouble, Verdict
from actors.inbound.router import Router
from actors.session.session import Session
from connectors.hooks import tree
from connectors.hooks.hook import Hook, HookError
from runtime.actor.actor import Actor
from runtime.testing import crash_on
from tests.fakes.company.company import Cast, at_rest, open_company
from tests.fakes.company.hooked import hooked, shouts
from tests.fakes.store.in_memory import MemoryStore

Clock = trio.testing.MockClock

WORDS = ("one", "two", "three", "four")
WHO: dict[str, tuple[object, type[Actor]]] = {
    "Router": (supervisor, Router),
    "Session": (supervisor, Session),
    "HookAsker": (supervisor, HookAsker),
    "Hook": (tree, Hook),
}


async def shouts_slowly(asked: AskHook) -> Verdict:
    await trio.sleep(0.2)
    return Verdict("change", asked.text.upper())


@pytest.mark.parametrize("at", range(1, 10))
@pytest.mark.parametrize("name", WHO)
async def test_each_message_is_answered_once_and_in_order(
    name: str, at: int, monkeypatch: pytest.MonkeyPatch, autojump_clock: Clock
) -> None:
    module, kind = WHO[name]
    monkeypatch.setattr(module, name, crash_on(kind, at))
    cast = Cast()
    hook = hooked(cast, shouts_slowly, "message_received", "message_sending")
    async with open_company(autojump_clock, cast):
        for text in WORDS:
            cast.platform.write(text)
        await at_rest(cast)
    said = [each.lower() for each in cast.platform.said()]
    assert said == [f"anna: anna heard {word}" for word in WORDS]
    # Who is open lets words pass if the one who asks has crashed.
    loud = [each.isupper() for each in (x.text for x in cast.platform.deliveries)]
    assert loud.count(False) <= (1 if name in {"HookAsker", "Hook"} else 0)
    assert len({(x.event, x.about.id) for x in hook.asked}) <= 2 * len(WORDS)


@pytest.mark.parametrize("first", range(2, 9))
async def test_a_disk_that_is_full_for_a_while_changes_nothing(
    first: int, autojump_clock: Clock
) -> None:
    cast = Cast(store=MemoryStore(fails_at=range(first, first + 4)))
    hook = hooked(cast, shouts_slowly, "message_received", "message_sending")
    async with open_company(autojump_clock, cast):
        cast.platform.write("one")
        await at_rest(cast)
    assert cast.platform.said() == ["anna: ANNA HEARD ONE"]
    assert len(hook.asked) == 2


async def test_one_that_was_busy_with_what_hung_is_tried_again_when_it_is_free(
    autojump_clock: Clock,
) -> None:
    troubles: list[Trouble] = ["timeout", "timeout", "timeout", "busy"]

    async def recovers(asked: AskHook) -> Verdict:
        if troubles:
            raise HookError("4 calls of it hang already", troubles.pop(0))
        return await shouts(asked)

    cast = Cast()
    hook = hooked(cast, recovers)
    async with open_company(autojump_clock, cast):
        for _ in range(6):
            cast.platform.write("hello")
            await at_rest(cast)
            await trio.sleep(LONGEST_PAUSE)
    assert len(hook.asked) == 6
    assert cast.platform.said()[4:] == ["anna: anna heard HELLO"] * 2
