"""People choose by `/queue` what becomes of words that come during an answer."""

from __future__ import annotations

from typing import Any, get_args

import pytest
import trio
import trio.testing

from actors.config.access import CommandsConfig
from actors.config.sessions import BufferingConfig, BusyPolicyConfig
from actors.messages.busy_policies import BusyPolicy
from actors.messages.deliveries import Abilities
from actors.messages.inbound import ModelRequest
from tests.fakes.company.company import FakeModel, Says, at_rest, heard, open_company
from tests.fakes.company.desked import Desked

Clock = trio.testing.MockClock

POLICIES: tuple[BusyPolicy, ...] = get_args(BusyPolicy)
ALONE = [["one"], ["two"], ["three"]]


def slowly(request: ModelRequest) -> Says:
    return Says(f"to {heard(request)}", after=60.0)


def company(**how: Any) -> Desked:
    return Desked(model=FakeModel(slowly), **how)


async def say(
    cast: Desked, *texts: str, sender: str = "zoe", chat: str = "room"
) -> None:
    for text in texts:
        cast.platform.write(text, sender=sender, chat=chat)
        await trio.sleep(1.0)


async def questions(
    cast: Desked, sender: str = "zoe", chat: str = "room"
) -> list[list[str]]:
    """Write three messages at once; give which of them each request asked."""
    before = len(cast.model.requests)
    await say(cast, "one", "two", "three", sender=sender, chat=chat)
    await at_rest(cast)
    found = [heard(each) for each in cast.model.requests[before:]]
    return [[x for x in ("one", "two", "three") if x in text] for text in found]


def told(cast: Desked) -> str:
    return cast.platform.deliveries[-1].text


async def test_a_chosen_policy_beats_the_settings_until_it_is_taken_back(
    autojump_clock: Clock,
) -> None:
    table = BusyPolicyConfig(connector="fake", policy="serial", overflow="oldest")
    cast = company(busy_policies=(table,))
    async with open_company(autojump_clock, cast):
        assert await questions(cast) == ALONE
        await say(cast, "/queue followup")
        assert told(cast) == (
            "From now on in this conversation: followup. What comes meanwhile is"
            " answered together afterwards. /queue default goes back."
        )
        assert await questions(cast) == [["one"], ["two", "three"]]
        await say(cast, "/queue default")
        assert told(cast).startswith("As the settings say again: serial.")
        assert await questions(cast) == ALONE


@pytest.mark.parametrize("policy", POLICIES)
async def test_it_outlives_the_process_and_the_conversation(
    policy: BusyPolicy, autojump_clock: Clock
) -> None:
    cast = company(buffering=BufferingConfig(policy="steer"))
    async with open_company(autojump_clock, cast):
        await say(cast, f"/queue {policy.upper()}", "/new")
        await at_rest(cast)
    cast.restart()
    async with open_company(autojump_clock, cast):
        await say(cast, "/queue")
        assert f"Chosen here: {policy}." in told(cast)
        await say(cast, "hello")
        await at_rest(cast)
        await say(cast, "/status", "/queue")
        assert f"Chosen here: {policy}." in told(cast)


async def test_it_holds_from_the_middle_of_an_answer(autojump_clock: Clock) -> None:
    cast = company()
    async with open_company(autojump_clock, cast):
        await say(cast, "one", "two", "/queue followup", "three")
        await at_rest(cast)
        assert [heard(x).count("#") for x in cast.model.requests] == [0, 2]


async def test_other_conversations_go_on_as_before(autojump_clock: Clock) -> None:
    cast = company()
    async with open_company(autojump_clock, cast):
        await say(cast, "/queue followup")
        assert await questions(cast, sender="kim", chat="den") == ALONE


@pytest.mark.parametrize(
    ("roles", "sender", "may"),
    [((), "zoe", False), (("admin",), "zoe", True), ((), "olga", True)],
)
async def test_in_a_group_admins_choose(
    roles: tuple[str, ...], sender: str, autojump_clock: Clock, *, may: bool
) -> None:
    cast = company(approvers=("fake/olga",))
    cast.platform.agent, cast.platform.roles = "anna", roles
    cast.platform.is_direct = False
    async with open_company(autojump_clock, cast):
        await say(cast, "/queue followup", sender=sender)
        refused = "/queue is for those who run this company, and for admins here."
        assert (told(cast) != refused) == may
        together = [["one"], ["two", "three"]]
        found = await questions(cast, sender=sender)
        assert found == (together if may else ALONE)


async def test_only_owners_hear_of_other_chats(autojump_clock: Clock) -> None:
    cast = company(approvers=("fake/olga",))
    async with open_company(autojump_clock, cast):
        await say(cast, "/queue")
        assert "In all chats" not in told(cast)
        await say(cast, "/queue", sender="olga")
        assert "In all chats: 0 open" in told(cast)


@pytest.mark.parametrize("word", ["folowup", "collect", "steer now", "/"])
async def test_what_cannot_be_chosen_changes_nothing(
    word: str, autojump_clock: Clock
) -> None:
    cast = company()
    async with open_company(autojump_clock, cast):
        await say(cast, f"/queue {word}")
        assert told(cast).startswith(f"There is no '{word}' to choose: serial,")
        assert await questions(cast) == ALONE


async def test_who_may_is_a_setting(autojump_clock: Clock) -> None:
    cast = company(commands=CommandsConfig(who={"queue": "nobody"}))
    async with open_company(autojump_clock, cast):
        await say(cast, "/queue followup")
        assert told(cast) == "/queue is switched off here."


async def test_where_requests_wait_nothing_is_chosen(autojump_clock: Clock) -> None:
    cast = company()
    cast.platform.can = Abilities(is_idempotent=True, shows_asides=False)
    async with open_company(autojump_clock, cast):
        await say(cast, "/queue followup")
        assert told(cast).startswith("Here each request waits for its own answer")
