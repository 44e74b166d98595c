"""Proves that what one node shows in a chat reaches the node that has the connector."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import trio
import trio.testing
from hypothesis import given, strategies as st
from msgspec import structs

from actors import names
from actors.approvals.permissions import OpenApproval
from actors.journal import commits
from actors.messages.deliveries import Draft, Typing
from actors.messages.keys import chat_partition
from actors.outbound.hints import AwayConnector, bare, encode_hint, pieces, take_hint
from actors.protocol import (
    AsideShown,
    Deliver,
    DrainOutbox,
    MessageSettled,
    ShowDraft,
    ShowReaction,
    ShowTyping,
    StopDelegated,
)
from actors.services import Duties, Services
from connectors.app.shutdown import Drain
from runtime.actor.messages import Keyed
from runtime.actor.ref import ActorRef
from runtime.clock import SystemClock
from runtime.nodes.hints import MOST_BYTES
from runtime.store.rows import Claim, Commit
from runtime.testing import Probe
from tests.fakes.actors.neighbours import ROOM, make_services, probe, saying, words
from tests.fakes.outbound.drafted import open_chat, reply
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import virtual

Clock = trio.testing.MockClock

ROOM_S = frozenset({chat_partition("fake", "room")})


def duties_of(*, has_bot: bool, has_room: bool) -> Duties:
    duties = Duties()
    duties.parts = ROOM_S if has_room else frozenset()
    duties.is_shared = duties.is_leased = lambda connector: connector == "fake"
    duties.accounts = frozenset({"fake"} if has_bot else ())
    return duties


@dataclass
class TwoNodes:
    """The stand-in at the node of a room, and what the other node hands on."""

    away: ActorRef
    services: Services
    """Of the other node."""

    heard: dict[str, Probe]
    find: Callable[[str], ActorRef | None]


@asynccontextmanager
async def two_nodes(
    clock: Clock, *, has_bot: bool = True, has_room: bool = False
) -> AsyncGenerator[TwoNodes]:
    """Run a node that works on the room, and another one."""
    services = make_services()
    duties = duties_of(has_bot=has_bot, has_room=has_room)
    services = replace(services, duties=duties)
    own = duties_of(has_bot=False, has_room=True)
    async with virtual(clock) as system:
        to = (names.connector("fake"), names.acknowledgements("fake"), names.ROUTER)
        heard = {name: probe(system, name) for name in to}

        def show(connector: str, message: object) -> None:
            take_hint(connector, *encode_hint(message), system.find, services)

        own.show = show
        away = system.spawn(AwayConnector("fake", own))
        yield TwoNodes(away, services, heard, system.find)


DRAFT = Draft(
    correlation_id="m1",
    reply_id="m1",
    turn_id="t",
    address=ROOM,
    agent="anna",
    text="Hel",
)
TYPING = Typing(correlation_id="m1", reply_id="m1", address=ROOM, agent="anna")
SIGN = ShowReaction(
    correlation_id="m1", address=ROOM, message="1", agent="anna", stage="received"
)


async def test_what_people_see_goes_on_in_order_and_rows_stay_rows(
    autojump_clock: Clock,
) -> None:
    async with two_nodes(autojump_clock) as nodes:
        for message in (
            DrainOutbox(),
            ShowTyping(TYPING),
            ShowDraft(DRAFT),
            Deliver(saying(1)),
            Keyed("room/1", SIGN),
            MessageSettled(words(), "dropped:nobody"),
        ):
            nodes.away.tell(message)
        await trio.testing.wait_all_tasks_blocked()
        assert nodes.heard[names.connector("fake")].received == [
            ShowTyping(TYPING),
            ShowDraft(DRAFT),
            MessageSettled(bare(words()), "dropped:nobody"),
        ]
        assert nodes.heard[names.acknowledgements("fake")].received == [
            Keyed("room/1", SIGN)
        ]


async def test_a_node_without_the_connector_shows_nothing(
    autojump_clock: Clock,
) -> None:
    async with two_nodes(autojump_clock, has_bot=False) as nodes:
        nodes.away.tell(ShowDraft(DRAFT))
        nodes.away.tell(Keyed("room/1", SIGN))
        await trio.testing.wait_all_tasks_blocked()
        assert not any(each.received for each in nodes.heard.values())


async def test_a_deleted_message_stops_the_work_at_the_node_of_its_chat(
    autojump_clock: Clock,
) -> None:
    stop = StopDelegated(words(), "", correlation_id="m1")
    for has_room in (True, False):
        async with two_nodes(autojump_clock, has_room=has_room) as nodes:
            services, find = nodes.services, nodes.find
            take_hint("fake", *encode_hint(stop), find, services)
            await trio.testing.wait_all_tasks_blocked()
            wanted = [structs.replace(stop, by=bare(words()))] if has_room else []
            assert nodes.heard[names.ROUTER].received == wanted


def test_a_hint_about_a_message_has_no_words_and_is_never_too_long() -> None:
    long = "Zoe" * MOST_BYTES
    message = structs.replace(
        words(),
        sender_name=long,
        text=long,
        roles=(long,),
        present=(long,),
        mentions=(long,),
        platform_fields={"topic": long},
    )
    for hint in (MessageSettled(message, "dropped"), StopDelegated(message, "")):
        _, body = encode_hint(hint)
        assert len(body) < MOST_BYTES / 2
        assert b"Zoe" not in body


async def test_a_question_counts_as_read_when_the_other_node_has_said_it(
    autojump_clock: Clock,
) -> None:
    async with two_nodes(autojump_clock) as nodes:
        board = nodes.services.board
        approval = OpenApproval(
            id="K7",
            turn_id="t",
            key="k",
            agent="anna",
            asker="fake/zoe",
            tool="shell",
            effect="run",
            address=ROOM,
        )
        board.put(approval, nodes.away, "q1")
        services, find = nodes.services, nodes.find
        take_hint("fake", *encode_hint(AsideShown("q1", 100.0)), find, services)
        take_hint("fake", "no such kind", b"{}", find, services)
        (posted,) = board._at(ROOM)
        assert posted.shown_at == 100.0


@given(text=st.text(), before=st.integers(0, 100_000))
def test_pieces_of_an_answer_are_all_of_it_and_fit_into_a_hint(
    text: str, before: int
) -> None:
    draft = structs.replace(DRAFT, text=text * 50, begins_at=before)
    at, said = before, ""
    for each in pieces(draft):
        assert each.begins_at == at
        assert len(encode_hint(ShowDraft(each))[1]) < MOST_BYTES
        at, said = at + len(each.text), said + each.text
    assert said == draft.text


async def test_words_of_another_node_behind_their_answer_are_not_shown(
    autojump_clock: Clock,
) -> None:
    duties = duties_of(has_bot=True, has_room=False)
    async with open_chat(autojump_clock, duties=duties) as chat:
        await chat.say(reply("Hello, Zoe"))
        chat.write("Hello")
        await trio.sleep(5)
        assert chat.screen.seen == ["Hello, Zoe"]
        waiting = reply("Later", part=1, trouble="waiting", reply_id="m2")
        await chat.say(waiting)
        chat.road.tell(ShowDraft(structs.replace(DRAFT, reply_id="m2", text="Again")))
        await trio.sleep(5)
        assert chat.screen.seen == ["Hello, Zoe", "Later", "Again"]


async def test_a_node_that_leaves_ends_what_runs_and_leaves_the_rest(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        store, duties = MemoryStore(), duties_of(has_bot=False, has_room=True)
        drain = Drain(system, store, SystemClock(), ("other",), duties=duties)
        rows = tuple(commits.as_accept(words(number=x), 1.0) for x in (1, 2))
        await store.commit(Commit(at=1.0, accepts=rows))
        assert await drain.under_way() == 0  # its successor takes them up
        await store.commit(Commit(at=1.0, claims=(Claim("m1", 1),)))
        assert await drain.under_way() == 1
        said = commits.as_enqueue(saying(1), 0)
        await store.commit(Commit(at=1.0, deliveries=(said,)))
        assert await drain.under_way() == 1  # the node with the bot says it


async def test_a_connector_that_goes_to_another_node_only_says_what_is_to_be_said(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        store, duties = MemoryStore(), duties_of(has_bot=True, has_room=True)
        drain = Drain(
            system, store, SystemClock(), ("fake",), duties=duties, has_moved=True
        )
        await store.commit(Commit(at=1.0, accepts=(commits.as_accept(words(), 1.0),)))
        assert await drain.under_way() == 0
        said = commits.as_enqueue(saying(1), 7)
        await store.commit(Commit(at=1.0, deliveries=(said,)))
        assert await drain.under_way() == 1
