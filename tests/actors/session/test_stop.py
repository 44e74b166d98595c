"""Proves that a stop is for one person's work in one chat, and all that came of it."""

from __future__ import annotations

import pytest
import trio.testing
from hypothesis import given, strategies as st
from msgspec import structs
from trio.testing import MockClock

from actors import names
from actors.journal import answers
from actors.journal.history import History
from actors.messages.inbound import Address, DelegationChain, Inbound
from actors.protocol import StopDelegated
from actors.session.outbox import SessionOutbox
from actors.session.stop import is_caused, is_same_asker, stop_for_room, stop_notice
from tests.fakes.actors.neighbours import make_services, of_kind, probe, words
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import Puppet, virtual

AGENTS = ("anna", "ben", "carl")


def in_chain(sender: str, chat: str, chain: list[str], origin: str) -> Inbound:
    return words(
        sender_id=sender,
        address=Address("fake", chat),
        chain=DelegationChain(tuple(chain)),
        correlation_id=origin,
    )


inbounds = st.builds(
    in_chain,
    st.sampled_from(("mia", "zoe")),
    st.sampled_from(("room", "hall")),
    st.lists(st.sampled_from(AGENTS), max_size=4).filter(lambda c: len(c) != 1),
    st.sampled_from(("m1", "m2")),
)


async def test_a_stop_reaches_what_a_stored_answer_handed_on_though_ours_gives_way(
    autojump_clock: MockClock,
) -> None:
    asked, by = words("dig", 1), words("/stop", 2)
    async with virtual(autojump_clock) as system:
        router = probe(system, names.ROUTER)
        session = Puppet()
        system.spawn(session)
        await trio.testing.wait_all_tasks_blocked()
        outbox = SessionOutbox(History("s", 20), "anna", make_services(MemoryStore()))
        outbox.stop_after(asked, StopDelegated(by, "anna"))
        ours = answers.notice(asked, "done", ("replied", "ok"))
        for _ in range(2):
            outbox.give_way(ours, session)
        await trio.testing.wait_all_tasks_blocked()
        (stop,) = of_kind(router, StopDelegated)
        assert stop.correlation_id == asked.correlation_id


@given(inbounds, inbounds, st.sampled_from(AGENTS), st.sampled_from(("", "m1", "m2")))
def test_a_stop_touches_nobody_else_s_work(
    inbound: Inbound, by: Inbound, agent: str, origin: str
) -> None:
    if is_caused(inbound, by, agent, origin):
        assert is_same_asker(inbound, by)
        assert inbound.sender_id == by.sender_id
        assert inbound.address == by.address
        assert agent in inbound.chain.agents
        assert origin in {"", inbound.correlation_id}


@given(inbounds, st.sampled_from(AGENTS), st.integers(0, 3))
def test_whatever_comes_of_a_task_is_stopped_with_it(
    inbound: Inbound, agent: str, hops: int
) -> None:
    by = structs.replace(
        inbound, chain=DelegationChain(), text="/stop", correlation_id="m9"
    )
    further = (*inbound.chain.agents, *AGENTS[:hops])
    next_one = structs.replace(inbound, chain=DelegationChain(further))
    if is_caused(inbound, by, agent, inbound.correlation_id):
        assert is_caused(next_one, by, agent, inbound.correlation_id)


def test_what_a_person_asked_is_not_what_an_agent_handed_on() -> None:
    assert is_same_asker(words(), words("/stop", 2))
    assert not is_caused(words(), words("/stop", 2), "anna")
    task = words(chain=DelegationChain(("anna", "ben")))
    assert is_caused(task, words("/stop", 2), "anna")
    assert not is_caused(task, words("/stop", 2), "ben")


def test_what_was_asked_before_a_stop_is_ended_whatever_the_clock_said() -> None:
    before = structs.replace(words(), received_at=9.0)
    stop = structs.replace(words("/stop", 2), received_at=4.0)
    after = structs.replace(words(number=3), received_at=1.0)
    assert is_caused(before, stop, "")
    assert not is_caused(after, stop, "")


@pytest.mark.parametrize(
    ("text", "is_for_all"),
    [("/stop", True), ("/stop all", True), ("/stop @anna", False), ("stop", False)],
)
def test_a_stop_that_calls_an_agent_is_not_for_the_room(
    text: str, *, is_for_all: bool
) -> None:
    said = structs.replace(words(text), is_direct=False)
    assert (stop_for_room(said, {"anna": "anna"}) is not None) == is_for_all


def test_people_are_told_what_came_of_it() -> None:
    said = [
        stop_notice(is_stopped=n == 0, is_late=n < 2, is_busy=n > 3, may_hand_on=n == 2)
        for n in range(5)
    ]
    assert said == [
        "Stopped.",
        "Too late: the answer is on its way.",
        "Nothing of yours runs here. If I handed something on for you, it is stopped.",
        "There is nothing to stop.",
        "There is nothing of yours to stop.",
    ]
