"""What is spent is counted once, and who has spent it all is told so."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from actors import names
from actors.config.agents import AgentConfig
from actors.errors import ModelBusyError
from actors.journal.records import UsageRecord
from actors.messages.state import RetryPolicy
from actors.models.budget import Budget, Limit
from actors.models.messages import ReplaceCatalogue
from actors.models.spending import CALL
from runtime.errors import StoreUnavailableError
from runtime.store.rows import Commit, Record, StoredRecord
from tests.fakes.company.company import Says, at_rest, call, open_company, until
from tests.fakes.models.accounts import Pooled
from tests.fakes.store.in_memory import MemoryStore

Clock = trio.testing.MockClock

SMART = {name: AgentConfig(model="smart", max_tokens=1) for name in ("anna", "ben")}
EACH_CALL = 0.5
"""US dollars, by the prices of the cast."""


def make_cast(*budgets: Budget, **fields: Any) -> Pooled:
    given: dict[str, Any] = {
        "agents": SMART,
        "retries": RetryPolicy(),
        "budgets": budgets,
        **fields,
    }
    return Pooled(**given)


def hard(calls: float, **fields: Any) -> Budget:
    """Make a budget that is used up after so many calls."""
    limit = Limit(usd=calls * EACH_CALL)
    given: dict[str, Any] = {"scope": "all", "period": "day", "hard": limit}
    return Budget(**(given | fields))


async def ask(
    cast: Pooled, *texts: str, chat: str = "room", sender: str = "zoe"
) -> None:
    for text in texts:
        cast.platform.write(text, chat=chat, sender=sender)
        await at_rest(cast)


def is_refused(said: str) -> bool:
    return "used up" in said and "ask again after" in said


async def test_status_says_what_is_left_of_one_s_own_budget(
    autojump_clock: Clock,
) -> None:
    own = hard(4, scope="user", hard=Limit(usd=4 * EACH_CALL, tokens=1000))
    others = hard(4, scope="user", who="fake/sam")
    month = hard(9, scope="user", period="month")
    cast = make_cast(own, others, month, hard(100))
    async with open_company(autojump_clock, cast):
        await ask(cast, "/status", "hello", "/status")
    before, _, after = cast.platform.said()
    assert "budget for today: $2.0000 / $2.0000, 1000 / 1000 tokens" in before
    assert "Left of your budget for today: $1.5000 / $2.0000, " in after
    assert "Left of your budget for this month: $4.0000 / $4.5000" in after
    assert after.count("Left of your") == 2


async def test_who_has_spent_it_all_is_told_and_nothing_is_tried_again(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(hard(2))
    async with open_company(autojump_clock, cast):
        await ask(cast, "one", "two", "three")
    one, two, three = cast.platform.said()
    assert (one, two) == ("anna: smart-1@work: one", "anna: smart-1@work: two")
    assert is_refused(three)
    assert await cast.inbox() == {"replied": 3}
    assert cast.asked() == (2, 0, 0)
    assert b'callboard_budget_actions_total{action="stop"} 1' in cast.metrics.render()
    assert b'callboard_cost_dollars_total{model="smart"} 1.0' in cast.metrics.render()


@pytest.mark.parametrize("scope", ["user", "agent"])
async def test_one_s_budget_is_not_another_s(scope: str, autojump_clock: Clock) -> None:
    cast = make_cast(hard(1, scope=scope))
    async with open_company(autojump_clock, cast):
        await ask(cast, "one", "two")
        await ask(cast, "@ben one", chat="other", sender="mia")
    said = cast.platform.said()
    assert [is_refused(each) for each in said] == [False, True]
    assert cast.platform.said("other") == ["ben: smart-1@work: @ben one"]


async def test_a_new_day_begins_with_nothing_spent(autojump_clock: Clock) -> None:
    cast = make_cast(hard(1))
    async with open_company(autojump_clock, cast):
        await ask(cast, "one", "two")
        await trio.sleep(86_400)
        await ask(cast, "three")
    said = cast.platform.said()
    assert [is_refused(each) for each in said] == [False, True, False]


@pytest.mark.parametrize("ahead", [5 * 3_600.0, 40 * 86_400.0])
@pytest.mark.parametrize("is_restarted", [False, True])
async def test_after_a_clock_that_was_ahead_the_day_s_limit_still_holds(
    ahead: float, *, is_restarted: bool, autojump_clock: Clock
) -> None:
    cast = make_cast(hard(2))
    async with open_company(autojump_clock, cast):
        cast.clock.ahead = ahead
        await ask(cast, "zero")
        cast.clock.ahead = 0.0
        await ask(cast, "one", "two", "three")
    if is_restarted:
        cast.restart()
    async with open_company(autojump_clock, cast):
        await ask(cast, "four", "five")
    said = cast.platform.said()
    assert [is_refused(each) for each in said] == [False] * 3 + [True] * 3


async def test_a_limit_that_is_raised_gives_what_it_was_raised_by(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(hard(4))
    async with open_company(autojump_clock, cast) as system:
        accounts = system.find(names.MODELS)
        assert accounts is not None
        await ask(cast, *map(str, range(10)))
        cast.budgets = (hard(7),)
        await accounts.ask(ReplaceCatalogue(cast.catalogue()))
        await ask(cast, *map(str, range(10)))
    assert cast.asked() == (7, 0, 0)
    assert sum(map(is_refused, cast.platform.said())) == 6 + 7


async def test_from_the_soft_limit_on_a_cheaper_model_answers(
    autojump_clock: Clock,
) -> None:
    soft = Limit(usd=EACH_CALL)
    cast = make_cast(hard(9, soft=soft, downgrade_to="cheap"))
    async with open_company(autojump_clock, cast):
        await ask(cast, "one", "two", "three")
    assert cast.platform.said() == [
        "anna: smart-1@work: one",
        "anna: cheap-1@spare: two",
        "anna: cheap-1@spare: three",
    ]
    text = cast.metrics.render().decode()
    assert 'callboard_budget_actions_total{action="soft"} 1' in text
    assert 'callboard_budget_actions_total{action="downgrade"} 2' in text


@pytest.mark.parametrize("how", ["process", "failed", "killed"])
async def test_what_was_spent_outlives_a_restart_in_the_middle_of_a_day(
    how: str, autojump_clock: Clock
) -> None:
    cast = make_cast(hard(3))
    async with open_company(autojump_clock, cast) as system:
        await ask(cast, "one", "two")
        accounts = system.find(names.MODELS)
        assert accounts is not None
        if how == "killed":
            accounts.kill()
        elif how == "failed":
            accounts.tell("nonsense")
            accounts.tell("nonsense")
    if how == "process":
        cast.restart()
    async with open_company(autojump_clock, cast):
        await ask(cast, "three", "four")
    said = cast.platform.said()
    assert [is_refused(each) for each in said] == [False, False, False, True]


@pytest.mark.parametrize("word", ["fail", "kill", ""])
async def test_calls_under_way_are_counted_once_whatever_becomes_of_the_accounts(
    word: str, autojump_clock: Clock
) -> None:
    cast = make_cast(hard(10))
    cast.work.faults += [Says(f"slow {number}", after=10) for number in range(3)]
    async with open_company(autojump_clock, cast) as system:
        accounts = system.find(names.MODELS)
        assert accounts is not None
        for number in range(3):
            cast.platform.write("hi", chat=f"room{number}")
        await until(lambda: len(cast.work.requests) == 3)
        if word == "fail":
            accounts.tell("nonsense")
        elif word == "kill":
            accounts.kill()
        await at_rest(cast)
        await trio.sleep(60)
        if word:
            accounts.tell("nonsense")  # now the ledger tells of them, too
        await ask(cast, *map(str, range(8)))
    said = [is_refused(each) for each in cast.platform.said()]
    assert said == [False] * 7 + [True]
    assert cast.asked() == (10, 0, 0)


@pytest.mark.parametrize("calls", [1, 5])
async def test_many_at_once_overshoot_by_no_more_than_what_is_under_way(
    calls: int, autojump_clock: Clock
) -> None:
    cast = make_cast(hard(calls))
    async with open_company(autojump_clock, cast):
        for number in range(30):
            cast.platform.write("hi", chat=f"room{number}")
        await trio.sleep(3000)
        await at_rest(cast)
    assert calls <= len(cast.work.requests) <= calls - 1 + cast.work.most_running
    answered = [each for each in cast.platform.deliveries if each.agent == "anna"]
    assert len(answered) == len(cast.work.requests)
    assert len({each.address.chat for each in cast.platform.deliveries}) == 30


@pytest.mark.parametrize("how", ["dies", "ends"])
async def test_a_turn_cut_off_by_the_process_s_end_is_counted_once(
    how: str, autojump_clock: Clock
) -> None:
    anna = AgentConfig(model="smart", delegates=("ben",), max_tokens=1)
    agents = {"anna": anna, "ben": SMART["ben"]}
    cast = make_cast(hard(3), agents=agents)
    cast.work.faults.append(Says(calls=(call("nothing"),)))
    cast.work.faults.append(Says("never", after=1000))
    async with open_company(autojump_clock, cast):
        cast.platform.write("one")
        await until(lambda: len(cast.work.requests) == 2)
        if how == "dies":
            cast.restart()
    if how == "ends":
        cast.restart()
    async with open_company(autojump_clock, cast):
        await at_rest(cast)  # one round was before the end, one after it
        await ask(cast, "two", "three")
    # What a call took that was cut off is reckoned, by whoever is there to do it.
    is_used_up = how == "ends"
    said = [is_refused(each) for each in cast.platform.said()]
    assert said == [is_used_up, is_used_up, True]
    rows = await cast.store.records("usage")
    spent = [msgspec.json.decode(row.body, type=UsageRecord) for row in rows]
    assert sum(each.cost for each in spent) == EACH_CALL * (1 if is_used_up else 3)


async def test_a_call_that_failed_counts_as_far_as_its_tokens_are_known(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(hard(2))
    broken = ModelBusyError("cut off", kind="protocol")
    broken.tokens = (3, 2, 0, 0.0)
    cast.work.faults.append(broken)
    async with open_company(autojump_clock, cast):
        await ask(cast, "one", "two")
    said = cast.platform.said()
    assert said[0] == "anna: smart-1@home: one"
    assert is_refused(said[1])
    rows = await cast.store.records("usage")
    first = msgspec.json.decode(rows[-1].body, type=UsageRecord)
    assert [(each.account, each.cost) for each in first.spent] == [
        ("work", EACH_CALL),
        ("home", EACH_CALL),
    ]
    assert (first.cost, first.spent[0].prices) == (2 * EACH_CALL, "v1")


async def test_a_stopped_turn_gives_back_what_was_held_for_it(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(hard(400))  # what is held for one call, and not for two
    cast.work.faults.append(Says("never", after=1000))
    async with open_company(autojump_clock, cast):
        cast.platform.write("one")
        await until(lambda: cast.work.requests)
        cast.platform.write("/stop")
        await at_rest(cast)
        await ask(cast, "two")
    assert cast.platform.said()[-1] == "anna: smart-1@work: two"


@pytest.mark.parametrize("body", [b'{"agent": 1}', b"", b"\xff"])
async def test_a_damaged_row_of_the_ledger_is_left_out_and_told(
    body: bytes, autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    cast = make_cast(hard(1))
    row = Record(kind=CALL, id="odd", owner="anna", part=0, body=body)
    await cast.store.commit(Commit(at=cast.clock.wall(), records=(row,)))
    async with open_company(autojump_clock, cast):
        await ask(cast, "one", "two")
    assert [is_refused(each) for each in cast.platform.said()] == [False, True]
    told = [each.message for each in caplog.records if each.levelno == logging.ERROR]
    assert told == ["a row of the ledger cannot be read and is left out"]
    assert b'callboard_budget_actions_total{action="unread"} 1' in cast.metrics.render()


async def test_while_the_ledger_cannot_be_read_nobody_is_asked(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(hard(1))
    cast.store = Unreadable()
    async with open_company(autojump_clock, cast):
        cast.platform.write("one")
        await trio.sleep(5)
        assert cast.asked() == (0, 0, 0)
        cast.store.is_sick = False
        await trio.sleep(200)
        await at_rest(cast)
    assert cast.platform.said()[-1] == "anna: smart-1@work: one"


class Unreadable(MemoryStore):
    """Cannot give records for a while."""

    is_sick = True

    async def records_since(
        self, kind: str, at: float, number: int = 0, limit: int = 1000
    ) -> tuple[StoredRecord, ...]:
        if self.is_sick:
            raise StoreUnavailableError("the disk is full")
        return await super().records_since(kind, at, number, limit)
