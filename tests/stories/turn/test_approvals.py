"""Somebody is asked before a tool runs: yes, no, nobody, the wrong one."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cached_property

import msgspec
import pytest
import trio
import trio.testing

from actors.approvals.board import DecideQuestion, ReadQuestions
from actors.config.agents import AgentConfig
from actors.config.limits import ApprovalConfig
from actors.config.sessions import SessionConfig
from actors.messages.deliveries import Abilities, Delivery
from actors.messages.inbound import ModelRequest, ToolContext
from actors.messages.keys import chat_partition
from actors.outbound.hints import encode_hint, take_hint
from actors.ports import Offer
from actors.protocol import AsideShown
from actors.services import Duties, NodesSaid, Services
from actors.session.consent import NO_ANSWER, answer_node
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Platform,
    Says,
    at_rest,
    call,
    open_company,
    until,
)
from tests.fakes.company.shell import OLGA, TIMEOUT, Office, Shell

Clock = trio.testing.MockClock


class Server:
    """A server of tools that has one."""

    def __init__(self, tool: Shell) -> None:
        self._tool = tool

    async def offer(self, context: ToolContext, words: str) -> Offer:
        del context, words
        return Offer((self._tool,))


async def test_the_owner_says_yes(autojump_clock: Clock) -> None:
    office = Office(autojump_clock)
    async with open_company(autojump_clock, office.cast):
        office.platform.write("run ls")
        approval_id = await office.asked()
        assert office.shell.ran == []
        office.platform.write(f"/approve {approval_id.lower()}", sender="olga")
        await at_rest(office.cast)
    question, told, answer = office.said()
    assert question == (
        ": 🔐 anna wants to run `shell`: run ls — only owners:"
        f" /approve {approval_id} or /deny {approval_id}, 120 s"
    )
    assert {told, answer} == {
        ": Approved: anna may run `shell`.",
        "anna: Wait.\n\nIt says: done",
    }
    assert office.shell.ran == ["zoe call-1"]
    states = [(each.outcome, each.by) for each in await office.leaves()]
    assert states == [("asked", ""), ("approved", OLGA)]
    assert office.counted("approved")


@pytest.mark.parametrize("word", ["/deny", "no", "No."])
async def test_the_owner_says_no(word: str, autojump_clock: Clock) -> None:
    office = Office(autojump_clock)
    async with open_company(autojump_clock, office.cast):
        office.platform.write("run ls")
        await office.asked()
        office.platform.write(word, sender="olga")
        await at_rest(office.cast)
    assert office.shell.ran == []
    assert ": Denied: anna does not run `shell`." in office.said()
    (answer,) = (each for each in office.said() if each.startswith("anna: "))
    assert "Error: shell was not run: the people here did not allow it" in answer
    assert office.counted("denied")


@pytest.mark.parametrize(("word", "ran"), [("yes", ["zoe call-1"]), ("no", [])])
async def test_a_tool_that_a_server_brings_is_asked_for_likewise(
    word: str, ran: list[str], autojump_clock: Clock
) -> None:
    shell = Shell()
    agents = {"anna": AgentConfig()}
    office = Office(autojump_clock, agents=agents, tools=(), sources=(Server(shell),))
    async with open_company(autojump_clock, office.cast):
        office.platform.write("run ls")
        await office.asked()
        assert not shell.ran
        office.platform.write(word, sender="olga")
        await at_rest(office.cast)
    assert shell.ran == ran


async def test_nobody_answers_in_time(autojump_clock: Clock) -> None:
    office = Office(autojump_clock)
    async with open_company(autojump_clock, office.cast):
        office.platform.write("run ls")
        approval_id = await office.asked()
        began = trio.current_time()
        await at_rest(office.cast)
        assert TIMEOUT - 2 < trio.current_time() - began < TIMEOUT + 5
        office.platform.write(f"/approve {approval_id}", sender="olga")
        await at_rest(office.cast)
    assert office.shell.ran == []
    assert office.said()[1:] == [
        f": 🔒 {approval_id}: nobody answered, so it does not run.",
        f"anna: Wait.\n\nIt says: Error: shell was not run: {NO_ANSWER}",
        f": No request {approval_id} is open in this chat.",
    ]
    assert office.counted("timeout")


async def test_the_wrong_person_decides_nothing(autojump_clock: Clock) -> None:
    office = Office(autojump_clock)
    async with open_company(autojump_clock, office.cast):
        office.platform.write("run ls")
        approval_id = await office.asked()
        office.platform.write(
            f"/approve {approval_id}"
        )  # the asker: it may run anything
        office.platform.write(
            f"/approve {approval_id}", chat="elsewhere", sender="olga"
        )
        office.platform.write("yes", sender="sam")
        await until(lambda: len(office.platform.deliveries) == 4)
        assert office.shell.ran == []
        office.platform.write("yes", sender="olga")
        await at_rest(office.cast)
    assert f": You may not decide about {approval_id}: ask an owner." in office.said()
    assert office.said("elsewhere") == [
        f": No request {approval_id} is open in this chat."
    ]
    assert office.shell.ran == ["zoe call-1"]
    assert "anna: to yes" in office.said()  # to whoever has no say it is a word


async def test_the_asker_may_approve_what_is_only_the_agent_s_own(
    autojump_clock: Clock,
) -> None:
    office = Office(autojump_clock, approvers=())
    office.shell.spec = msgspec.structs.replace(office.shell.spec, effect="write")
    async with open_company(autojump_clock, office.cast):
        office.platform.write("run ls")
        await office.asked()
        office.platform.write("/approve")
        await at_rest(office.cast)
    assert office.shell.ran == ["zoe call-1"]


async def test_where_nobody_can_be_asked_it_is_a_no_at_once(
    autojump_clock: Clock,
) -> None:
    office = Office(autojump_clock, approvers=())
    async with open_company(autojump_clock, office.cast):
        office.platform.write("run ls")
        await at_rest(office.cast, within=5)
    (answer,) = office.said()
    assert "nobody can be asked here" in answer
    blind = Office(autojump_clock)
    blind.platform.can = Abilities(is_idempotent=True, shows_asides=False)
    async with open_company(autojump_clock, blind.cast):
        blind.platform.write("run ls")
        await at_rest(blind.cast, within=5)
    assert blind.shell.ran == []
    assert blind.counted("unasked")


async def test_stop_ends_the_question_too(autojump_clock: Clock) -> None:
    office = Office(autojump_clock)
    async with open_company(autojump_clock, office.cast):
        office.platform.write("run ls")
        approval_id = await office.asked()
        office.platform.write("/stop")
        await at_rest(office.cast, within=10)
        office.platform.write(f"/approve {approval_id}", sender="olga")
        await at_rest(office.cast, within=10)
        office.platform.write("hello")
        await at_rest(office.cast, within=10)
    assert office.shell.ran == []
    assert office.said()[1:] == [
        ": (stopped)",
        ": Stopped.",
        f": No request {approval_id} is open in this chat.",
        "anna: to hello",
    ]
    assert office.counted("stopped")


async def test_the_session_goes_on_hearing_people_meanwhile(
    autojump_clock: Clock,
) -> None:
    office = Office(autojump_clock)
    async with open_company(autojump_clock, office.cast):
        office.platform.write("run ls")
        approval_id = await office.asked()
        office.platform.write("/help")
        await until(lambda: len(office.said()) == 2)
        assert "/approve ID" in office.said()[1]
        office.platform.write("hello")
        office.platform.write(f"/deny {approval_id}", sender="olga")
        await at_rest(office.cast)
    assert office.said()[-1] == "anna: to hello"


async def test_always_holds_for_that_tool_and_asker_and_so_long(
    autojump_clock: Clock,
) -> None:
    office = Office(
        autojump_clock,
        approvals=ApprovalConfig(always_for=500.0),
        sessions=SessionConfig(idle_after=10_000.0),
    )
    async with open_company(autojump_clock, office.cast):
        office.platform.write("run 1")
        approval_id = await office.asked()
        office.platform.write(f"/approve {approval_id} always", sender="olga")
        await at_rest(office.cast)
        office.platform.write("run 2")
        await at_rest(office.cast, within=10)
        assert len(office.shell.ran) == 2
        office.platform.write("run 3", sender="olga")
        await office.asked(2)
        office.platform.write("yes", sender="olga")
        await at_rest(office.cast)
        await trio.sleep(500)
        office.platform.write("run 4")
        await office.asked(3)
        office.platform.write("no", sender="olga")
        await at_rest(office.cast)
    assert len(office.shell.ran) == 3


async def test_in_a_group_no_mention_is_needed_and_no_other_agent_hears_it(
    autojump_clock: Clock,
) -> None:
    office = Office(autojump_clock, platform=Platform(is_direct=False))
    async with open_company(autojump_clock, office.cast):
        office.platform.write("@anna run ls")
        await office.asked()
        office.platform.write("yes", sender="olga")
        await at_rest(office.cast)
    assert len(office.shell.ran) == 1
    assert ": Approved: anna may run `shell`." in office.said()


async def test_a_bystander_s_ok_in_a_group_is_no_question_to_the_agent(
    autojump_clock: Clock,
) -> None:
    office = Office(autojump_clock, platform=Platform(is_direct=False))
    async with open_company(autojump_clock, office.cast):
        office.platform.write("@anna run ls")
        await office.asked()
        office.platform.write("ok", sender="sam")
        office.platform.write("yes", sender="olga")
        await at_rest(office.cast)
    assert len(office.shell.ran) == 1
    assert len(office.cast.model.requests) == 2
    assert not any("to ok" in each for each in office.said())


async def test_owners_can_be_asked_elsewhere(autojump_clock: Clock) -> None:
    office = Office(
        autojump_clock, approvals=ApprovalConfig(approval_chat="fake/bosses")
    )
    async with open_company(autojump_clock, office.cast):
        office.platform.write("run ls")
        await office.asked(chat="bosses")
        office.platform.write("yes", sender="olga")  # not here: a word
        office.platform.write("/approve", chat="bosses", sender="olga")
        await at_rest(office.cast)
    assert office.said("bosses")[1] == ": Approved: anna may run `shell`."
    assert office.said()[0] == (
        ": 🔐 anna wants to run `shell`: run ls — an owner has been asked."
    )
    assert sorted(office.said()[1:]) == ["anna: Wait.\n\nIt says: done", "anna: to yes"]


ApprovalAsked = ReadQuestions | DecideQuestion


class NodeCast(Cast):
    """A company that is one of two nodes, and works on one chat."""

    def join(self, chat: str) -> None:
        """Say which chat is this node's; hints go nowhere, and nobody is asked."""
        self.duties.parts = frozenset({chat_partition("fake", chat)})
        self.duties.is_shared = lambda _: True

    @property
    def services(self) -> Services:
        return self.held

    @cached_property
    def held(self) -> Services:
        """Always the same."""
        return super().services


class TwoOffices:
    """Anna works on `room` at one node; `bosses`, where owners are asked, is another's.

    Args:
        hears: whether hints arrive.
        answers: whether the first node answers the second one.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        hears: bool = True,
        answers: bool = True,
        chat: str = "fake/bosses",
    ) -> None:
        elsewhere = ApprovalConfig(approval_chat=chat)
        self.first, self.second = (
            Office(clock, kind=NodeCast, approvals=elsewhere) for _ in range(2)
        )
        self._answers = answers
        self.questions = 0
        for office, own in ((self.first, "room"), (self.second, "bosses")):
            assert isinstance(office.cast, NodeCast)
            office.cast.join(own)
        if hears:
            self.first.cast.services.duties.show = self.show
        self.second.cast.services.duties.ask = self.ask

    def show(self, connector: str, message: object) -> None:
        """Carry a hint from the first node to the second one."""
        kind, body = encode_hint(message)
        take_hint(connector, kind, body, lambda _: None, self.second.cast.services)

    async def ask(self, question: object) -> NodesSaid:
        """Carry a question from the second node to the first one."""
        self.questions += 1
        await trio.lowlevel.checkpoint()
        if not self._answers:
            return NodesSaid(silent=("Node a: did not answer within 3 s.",))
        asked = msgspec.json.decode(msgspec.json.encode(question), type=ApprovalAsked)
        found = answer_node(asked, self.first.cast.services)
        return NodesSaid(() if found is False else (msgspec.json.encode(found),))

    @asynccontextmanager
    async def asked(self, clock: Clock) -> AsyncGenerator[str]:
        """Have anna ask for leave; gives the id of the question."""
        async with (
            open_company(clock, self.first.cast),
            open_company(clock, self.second.cast),
        ):
            self.first.platform.write("run ls")
            board = self.first.cast.services.board
            await until(lambda: board.open)
            yield board.open[0].id

    async def told(self, words: str) -> str:
        """Have olga write in the owners' chat; gives what she is told."""
        before = len(self.second.said("bosses"))
        self.second.platform.write(words, chat="bosses", sender="olga")
        await at_rest(self.second.cast)
        (said,) = self.second.said("bosses")[before:]
        return said

    async def ran(self) -> list[str]:
        """Give what anna has run in the end."""
        await until(lambda: any("It says" in each for each in self.first.said()))
        return self.first.shell.ran


@pytest.mark.parametrize("words", ["/approve", "yes", "/approve {id}"])
async def test_owners_can_be_asked_in_a_chat_of_another_node(
    words: str, autojump_clock: Clock
) -> None:
    offices = TwoOffices(autojump_clock)
    async with offices.asked(autojump_clock) as approval_id:
        board = offices.second.cast.services.board
        assert not board.open  # what waits here is all that the page shows
        offices.show("fake", AsideShown(board.question_of(approval_id), 0.0))
        await trio.sleep(2.0)
        told = await offices.told(words.format(id=approval_id))
        assert told == ": Approved: anna may run `shell`."
        assert await offices.ran() == ["zoe call-1"]
        assert not board.ids
        told = await offices.told(f"/deny {approval_id}")
        assert told == f": No request {approval_id} is open in this chat."


async def test_a_question_of_which_no_hint_came_is_found_by_its_id(
    autojump_clock: Clock,
) -> None:
    offices = TwoOffices(autojump_clock, hears=False)
    async with offices.asked(autojump_clock) as approval_id:
        assert await offices.told("yes") == "anna: to yes"
        told = await offices.told(f"/deny {approval_id}")
        assert told == ": Denied: anna does not run `shell`."
        assert await offices.ran() == []


async def test_nobody_makes_nodes_ask_each_other_from_any_other_chat(
    autojump_clock: Clock,
) -> None:
    offices = TwoOffices(autojump_clock, hears=False, chat="fake/nobody")
    async with offices.asked(autojump_clock) as approval_id:
        told = await offices.told(f"/approve {approval_id}")
        assert told == f": No request {approval_id} is open in this chat."
        assert offices.questions == 0


async def test_a_decision_that_arrives_too_late_is_not_confirmed(
    autojump_clock: Clock,
) -> None:
    offices = TwoOffices(autojump_clock)
    async with offices.asked(autojump_clock) as approval_id:
        offices.first.cast.duties.show = Duties().show
        assert await offices.ran() == []  # nobody answered in time
        told = await offices.told(f"/approve {approval_id}")
        assert told == f": Nobody waits for {approval_id} any more."


async def test_a_decision_about_a_session_that_has_ended_is_not_confirmed(
    autojump_clock: Clock,
) -> None:
    offices = TwoOffices(autojump_clock)
    async with offices.asked(autojump_clock) as approval_id:
        board = offices.first.cast.services.board
        (approval,), question = board.open, board.question_of(approval_id)
        session = board.take(approval)
        assert session is not None
        await session.stop()
        board.put(approval, session, question)
        decide = DecideQuestion(
            question, "fake/olga", is_approved=True, is_lasting=False, once="1"
        )
        assert await offices.ask(decide) == NodesSaid()


@pytest.mark.parametrize("hears", [True, False])
async def test_a_node_that_does_not_answer_is_named_to_who_decides(
    *, hears: bool, autojump_clock: Clock
) -> None:
    offices = TwoOffices(autojump_clock, hears=hears, answers=False)
    async with offices.asked(autojump_clock) as approval_id:
        told = await offices.told(f"/approve {approval_id}")
        assert told.endswith("\nNode a: did not answer within 3 s.")
        assert "Approved" not in told
        assert await offices.ran() == []


async def test_questions_of_one_round_are_answered_one_by_one(
    autojump_clock: Clock,
) -> None:
    def both(request: ModelRequest) -> str | Says:
        results = [line.text for line in request.lines if line.role == "tool"]
        if results or request.lines[-1].text == "yes":
            return " and ".join(each.split(":")[0] for each in results)
        return Says(calls=tuple(call("shell", n, command=f"{n}") for n in (1, 2)))

    office = Office(autojump_clock, model=FakeModel(both))
    async with open_company(autojump_clock, office.cast):
        office.platform.write("run both")
        second = await office.asked(2)
        office.platform.write("yes", sender="olga")  # to which?
        office.platform.write("/approve", sender="olga")
        office.platform.write(f"/deny {second}", sender="olga")
        await until(lambda: any("Denied" in each for each in office.said()))
        office.platform.write("yes", sender="olga")
        await at_rest(office.cast)
    assert len(office.shell.ran) == 1
    which = [each for each in office.said() if "requests are open here" in each]
    assert len(which) == 2  # nobody guesses
    assert len(office.cast.model.requests) == 2
    assert office.counted("ambiguous")
    assert any("done" in each and "Error" in each for each in office.said())


class Slow(Platform):
    """A platform where a question takes 1.5 s; meanwhile olga writes a word."""

    async def deliver(self, delivery: Delivery) -> str:
        if delivery.is_aside and "/approve" in delivery.text:
            self.write("ok", sender="olga")
            await trio.sleep(1.5)
        return await super().deliver(delivery)


async def test_a_word_that_was_on_its_way_before_the_question_is_a_word(
    autojump_clock: Clock,
) -> None:
    office = Office(autojump_clock, platform=Slow())
    async with open_company(autojump_clock, office.cast):
        office.platform.write("run ls")
        await office.asked()
        await trio.sleep(5)
        assert office.shell.ran == []
        office.platform.write("no", sender="olga")
        await at_rest(office.cast)
    assert office.shell.ran == []
    assert "anna: to ok" in office.said()


async def test_a_word_right_after_the_question_is_asked_for_again(
    autojump_clock: Clock,
) -> None:
    office = Office(autojump_clock)
    async with open_company(autojump_clock, office.cast):
        office.platform.write("run ls")
        await until(lambda: len(office.said()) == 1)
        office.platform.write("ok", sender="olga")
        await until(lambda: len(office.said()) == 2)
        assert "may have been meant for something else" in office.said()[1]
        assert office.shell.ran == []
        await trio.sleep(1)
        office.platform.write("ok", sender="olga")
        await at_rest(office.cast)
    assert office.shell.ran == ["zoe call-1"]
    assert office.counted("too_early")
