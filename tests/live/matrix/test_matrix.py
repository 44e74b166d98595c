"""Three agents in rooms of a real Synapse: who answers, under which account, how often.

`callboard serve` runs as a process with scripted models.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio

from tests.live.matrix.crew import Crew, figure, wait_in_step, wait_typing
from tests.live.matrix.synapse import Room
from tests.processes.running import Server

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def server(crew: Crew, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run the company for all tests here."""
    with crew.served(tmp_path_factory.mktemp("company")) as running:
        trio.run(wait_in_step, running)
        yield running
        assert running.process.poll() is None, running.log


async def gathered(crew: Crew) -> Room:
    """Make a room with two people and three agents."""
    room = await crew.zoe.room(crew.sam, *crew.agents, name="Crew")
    await crew.sam.client("POST", f"/rooms/{room.id}/join")
    await room.wait_joined(crew.sam, *crew.agents)
    return room


@pytest.mark.usefixtures("server")
async def test_small_talk_is_left_alone_and_a_mention_answered_once(
    crew: Crew,
) -> None:
    room = await gathered(crew)
    await room.say("what a day")
    await room.say("indeed", crew.sam)
    asked = await room.say("@anna echo hello", crew.sam)
    await room.wait_said(1, *crew.agents)
    await room.say("@ben echo **bold**")
    assert await room.wait_said(1, crew.ben) == ["**bold**"]
    assert await room.wait_said(1, crew.anna) == ["hello"]
    assert len(await room.said(*crew.agents)) == 2
    (answer,) = await room.said(crew.anna)
    assert answer["m.relates_to"] == {"m.in_reply_to": {"event_id": asked}}
    assert answer["m.mentions"] == {"user_ids": [crew.sam.user]}
    (formatted,) = await room.said(crew.ben)
    assert "<strong>bold</strong>" in formatted["formatted_body"]


async def test_a_message_that_three_accounts_hear_is_handed_in_once(
    crew: Crew, server: Server
) -> None:
    room = await gathered(crew)
    name = "callboard_messages_total"
    before = await figure(server, name, "matrix", "accepted")
    for number in range(5):
        await room.say(f"@cleo echo number {number}")
    answers = await room.wait_said(5, crew.cleo)
    assert answers == [f"number {number}" for number in range(5)]
    assert await figure(server, name, "matrix", "accepted") == before + 5
    assert await figure(server, name, "matrix", "duplicate") == 0


@pytest.mark.usefixtures("server")
async def test_what_is_handed_on_is_answered_under_the_others_account(
    crew: Crew,
) -> None:
    room = await gathered(crew)
    await room.say("@anna sum 2+3")
    assert await room.wait_said(1, crew.ben) == ["2+3 = 5"]
    assert await room.wait_said(1, crew.anna) == ["That is one for Ben."]
    assert await room.said(crew.cleo) == []


@pytest.mark.usefixtures("server")
async def test_a_mention_by_a_client_and_a_reply_reach_who_is_meant(
    crew: Crew,
) -> None:
    room = await gathered(crew)
    called = {"m.mentions": {"user_ids": [crew.ben.user]}}
    await room.say("Benjamin: echo one", **called)
    assert await room.wait_said(1, crew.ben) == ["one"]
    (answer,) = (
        event["event_id"]
        for event in await room.events()
        if event["sender"] == crew.ben.user and event["type"] == "m.room.message"
    )
    related = {"m.in_reply_to": {"event_id": answer}}
    await room.say("echo two", crew.sam, **{"m.relates_to": related})
    assert await room.wait_said(2, crew.ben) == ["one", "two"]
    assert await room.said(crew.anna, crew.cleo) == []


@pytest.mark.usefixtures("server")
async def test_alone_with_an_agent_no_name_is_needed(crew: Crew) -> None:
    room = await crew.zoe.room(crew.ben, is_direct=True)
    # Said between the invitation and the joining: it was meant for him.
    await room.say("echo I am here")
    assert await room.wait_said(1, crew.ben) == ["I am here"]
    (answer,) = await room.said(crew.ben)
    assert "m.relates_to" not in answer
    assert answer["m.mentions"] == {}


@pytest.mark.usefixtures("server")
async def test_a_stop_ends_an_answer_that_is_being_written(crew: Crew) -> None:
    room = await crew.zoe.room(crew.anna, is_direct=True)
    await room.wait_joined(crew.anna)
    await room.say("slowly " + "and on " * 100)
    await wait_typing(crew, room, crew.anna)
    await room.say("/stop")
    await room.wait_said(1, crew.anna)
    await room.say("echo hello again")
    with trio.fail_after(30):
        told: list[str] = []
        while "hello again" not in told:
            told = await room.wait_said(len(told) + 1, crew.anna)
    assert "Stopped." in told
    assert sum(words.count("and on") for words in told) < 100


@pytest.mark.usefixtures("server")
async def test_an_answer_stays_in_its_thread(crew: Crew) -> None:
    room = await gathered(crew)
    root = await room.say("lunch?")
    thread = {"rel_type": "m.thread", "event_id": root}
    asked = await room.say("@anna echo soup", **{"m.relates_to": thread})
    await room.wait_said(1, crew.anna)
    (answer,) = await room.said(crew.anna)
    related = answer["m.relates_to"]
    assert (related["rel_type"], related["event_id"]) == ("m.thread", root)
    assert related["m.in_reply_to"]["event_id"] in {asked, root}


async def test_only_invitations_of_the_listed_are_accepted(
    crew: Crew, server: Server
) -> None:
    declined = await crew.sam.room(crew.anna, crew.ben)
    secret = {"type": "m.room.encryption", "state_key": ""}
    algorithm = {"algorithm": "m.megolm.v1.aes-sha2"}
    encrypted = await crew.zoe.room(
        crew.anna, initial_state=[{**secret, "content": algorithm}]
    )
    for room in (declined, encrypted):
        await room.wait_membership(crew.anna, "leave")
    (left,) = (
        event["content"]
        for event in await encrypted.events()
        if event.get("state_key") == crew.anna.user
        and event["content"]["membership"] == "leave"
    )
    assert "unencrypted rooms only" in left["reason"]
    assert await figure(server, "callboard_matrix_events_total", "declined") >= 3
