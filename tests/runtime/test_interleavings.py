"""Proves that no interleaving of sends, ends and interrupts loses a message."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import trio
import trio.testing
from hypothesis import given, strategies as st

from runtime.system import ActorSystem
from runtime.testing import open_test_system, wait_settled
from tests.support.puppet import Puppet, crash, supervise, wait

Act = tuple[str, float]
ACTS = st.tuples(
    st.sampled_from(["tell", "ask", "send", "interrupt", "crash", "kill"]),
    st.sampled_from([0.0, 0.0, 0.5, 1.0]),
)


@given(acts=st.lists(ACTS, max_size=25))
def test_whatever_happens_every_message_is_accounted_for(acts: list[Act]) -> None:
    async def main() -> None:
        async with open_test_system() as system:
            await play(system, acts)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


async def play(system: ActorSystem, acts: list[Act]) -> None:
    log: list[Any] = []
    (ref,) = await supervise(system, partial(Puppet, log), intensity=1000)
    asked: list[Any] = []
    sent = 0
    for number, (act, pause) in enumerate(acts):
        steps: dict[str, Callable[[], Any]] = {
            "tell": partial(ref.tell, wait(0.7, f"told {number}")),
            "send": partial(ref.tell, f"sent {number}"),
            "crash": partial(ref.tell, crash),
            "ask": partial(ref.ask, wait(0.7, f"asked {number}")),
            "interrupt": ref.interrupt,
            "kill": ref.kill,
        }
        result = steps[act]()
        sent += act in {"tell", "send", "crash", "ask"}
        if act == "ask":
            asked.append(result)
        await trio.sleep(pause)
    await trio.sleep(5000)
    await wait_settled(system)
    handled = [word for word in log if str(word).startswith(("told", "sent", "asked"))]
    order = [int(word.split()[1]) for word in handled]
    assert order == sorted(set(order))
    given_up, interrupted = system.dead_letters.counts, log.count("interrupt")
    letters = given_up.total() - given_up["late_reply"]
    assert len(handled) + letters + interrupted == sent
    assert all(reply.is_set for reply in asked)
    assert system.statistics().timers == 0
