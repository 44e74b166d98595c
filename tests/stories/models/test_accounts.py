"""An account that fails is nobody's business but ours: others answer, or later."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest
import trio
import trio.testing

from actors import names
from actors.config.agents import AgentConfig
from actors.config.limits import LimitsConfig
from actors.errors import ModelBusyError, ModelError, ModelFault, ModelRefusedError
from actors.messages.state import RetryPolicy
from actors.models.accounts import LET_IN, SHUT_OUT
from actors.services import Furnishing
from tests.fakes.company.company import Says, at_rest, call, open_company, until
from tests.fakes.models.accounts import Pooled

Clock = trio.testing.MockClock

SMART = {"anna": AgentConfig(model="smart")}
OWN_FAULT = ("bad_request", "content", "context", "vision")
REFUSED = SHUT_OUT.format(account="work", model="smart")
NEVER_SHOWN = ("work", "home", "spare", "secret words", "429")


def fault(kind: ModelFault, retry_after: float | None = None) -> ModelError:
    if kind in {"auth", "quota", *OWN_FAULT}:
        return ModelRefusedError("secret words of work: 429", kind=kind)
    text = "secret words of work: 429"
    return ModelBusyError(text, kind=kind, retry_after=retry_after)


def make_cast(**fields: Any) -> Pooled:
    given: dict[str, Any] = {"agents": SMART, "retries": RetryPolicy()}
    return Pooled(**(given | fields))


async def ask(clock: Clock, cast: Pooled, *texts: str) -> list[str]:
    async with open_company(clock, cast):
        for text in texts:
            cast.platform.write(text)
            await at_rest(cast)
    return cast.platform.said()


@pytest.mark.parametrize(
    "kind", sorted(set(get_args(ModelFault)) - {*OWN_FAULT, "protocol"})
)
async def test_an_account_that_fails_is_passed_over_unseen(
    kind: ModelFault, autojump_clock: Clock
) -> None:
    cast = make_cast()
    cast.work.faults.append(fault(kind))
    said = await ask(autojump_clock, cast, "one", "two")
    assert said == ["anna: smart-1@home: one", "anna: smart-1@home: two"]
    assert cast.asked() == (1, 2, 0)  # it is left alone for the second, too


async def test_an_account_that_made_no_sense_once_is_asked_like_any(
    autojump_clock: Clock,
) -> None:
    cast = make_cast()
    cast.work.faults.append(fault("protocol"))
    said = await ask(autojump_clock, cast, "one", "two")
    assert said == ["anna: smart-1@home: one", "anna: smart-1@work: two"]
    assert cast.asked() == (2, 1, 0)


@pytest.mark.parametrize("kind", OWN_FAULT)
async def test_what_no_account_will_ever_answer_is_put_to_one(
    kind: ModelFault, autojump_clock: Clock
) -> None:
    cast = make_cast(fallbacks=("cheap",))
    cast.work.faults.append(fault(kind))
    (said,) = await ask(autojump_clock, cast, "one")
    wording = {"context": "Context window", "vision": "cannot see pictures"}
    assert wording.get(kind, "refused to answer") in said
    assert not any(word in said for word in NEVER_SHOWN)
    assert cast.asked() == (1, 0, 0)


async def test_a_limit_is_kept_to_and_then_over(autojump_clock: Clock) -> None:
    cast = make_cast()
    cast.work.faults.append(fault("rate", 100.0))
    async with open_company(autojump_clock, cast):
        for seconds in (0, 98, 3):
            await trio.sleep(seconds)
            cast.platform.write("hi")
            await at_rest(cast)
    answered = [said.split("@")[1] for said in cast.platform.said()]
    assert answered == ["home: hi", "home: hi", "work: hi"]


async def test_when_no_account_is_left_the_fallback_answers(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    cast = make_cast(fallbacks=("cheap",))
    cast.work.is_down = cast.home.is_down = fault("quota")
    assert await ask(autojump_clock, cast, "one") == ["anna: cheap-1@spare: one"]
    text = cast.metrics.render().decode()
    assert 'callboard_fallbacks_total{instead="cheap",model="smart"} 1' in text
    assert "callboard_models_cooling_down 2" in text
    warned = [line for line in caplog.records if line.levelname == "WARNING"]
    assert len([line for line in warned if "used up" in line.getMessage()]) == 2


async def test_cool_downs_that_are_over_are_not_shown_any_more(
    autojump_clock: Clock,
) -> None:
    cast = make_cast()
    cast.work.faults.append(fault("rate", 100.0))
    async with open_company(autojump_clock, cast):
        assert "callboard_models_cooling_down 0" in cast.metrics.render().decode()
        for _ in range(2):
            cast.platform.write("hi")
            await at_rest(cast)
            assert "callboard_models_cooling_down 1" in cast.metrics.render().decode()
            await trio.sleep(111)
            assert "callboard_models_cooling_down 0" in cast.metrics.render().decode()
            cast.work.faults.append(fault("rate", 100.0))


async def test_when_all_are_exhausted_it_is_answered_later(
    autojump_clock: Clock,
) -> None:
    cast = make_cast()
    cast.work.faults.append(fault("rate", 900.0))
    cast.home.faults.append(fault("rate", 600.0))
    async with open_company(autojump_clock, cast):
        cast.platform.write("one")
        await until(cast.platform.said)
        (row,) = await cast.store.unsettled()
        # Two minutes by `[retries]`, but nobody can answer before ten have passed.
        assert row.due_at - cast.clock.wall() == pytest.approx(600, abs=1)
        await trio.sleep(610)
        await at_rest(cast)
    notice, answer = cast.platform.said()
    assert "overloaded" in notice
    assert "in 10 minutes" in notice
    assert answer == "anna: smart-1@home: one"
    assert not any(word in notice for word in NEVER_SHOWN)


async def test_a_short_limit_is_waited_for_in_the_turn(autojump_clock: Clock) -> None:
    cast = make_cast()
    cast.work.faults.append(fault("rate", 5.0))
    cast.home.faults.append(fault("rate", 9.0))
    assert await ask(autojump_clock, cast, "one") == ["anna: smart-1@work: one"]
    assert 5 <= trio.current_time() < 6


async def test_nobody_is_let_in_anywhere(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    cast = make_cast()
    cast.work.is_down = cast.home.is_down = fault("auth")
    (said,) = await ask(autojump_clock, cast, "one")
    assert "whoever runs me" in said
    assert "the log says what is wrong" in said
    # Errors only: at a terminal nothing less is shown.
    errors = [line for line in caplog.records if line.levelname == "ERROR"]
    assert len(errors) == 2
    assert all("check its key" in line.getMessage() for line in errors)
    assert not any(word in said for word in NEVER_SHOWN)
    assert await cast.inbox() == {"replied": 1}  # trying again could not help
    assert b"callboard_accounts_refused 2" in cast.metrics.render()


async def test_a_key_that_was_refused_once_is_tried_again(
    autojump_clock: Clock,
) -> None:
    cast = make_cast()
    for model in (cast.work, cast.home):
        model.faults.append(fault("auth"))
    async with open_company(autojump_clock, cast):
        for text in ("one", "two", "three"):
            cast.platform.write(text)
            await at_rest(cast)
            await trio.sleep(20)
    first, second, third = cast.platform.said()
    assert "whoever runs me" in first
    assert (second, third) == ("anna: smart-1@work: two", "anna: smart-1@work: three")


class Owned(Pooled):
    """A company with two owners."""

    @property
    def furnishing(self) -> Furnishing:
        owners = frozenset({"fake/olga", "fake/otto"})
        return replace(super().furnishing, owners=owners)


async def test_owners_are_told_once_of_a_refused_key_and_when_it_works(
    autojump_clock: Clock,
) -> None:
    cast = Owned(agents=SMART, retries=RetryPolicy())
    async with open_company(autojump_clock, cast):
        for owner in ("olga", "otto"):
            cast.platform.write("hello", sender=owner, chat=f"{owner}'s")
        await at_rest(cast)
        cast.work.is_down = fault("auth")
        for _ in range(5):  # over several steps of its cool-down
            cast.platform.write("hello")
            await at_rest(cast)
            await trio.sleep(120)
        for owner in ("olga", "otto"):
            assert cast.platform.said(f"{owner}'s")[1:] == [f": {REFUSED}"]
        cast.work.is_down = None
        await trio.sleep(3_600)
        cast.platform.write("hello")
        await at_rest(cast)
    told = cast.platform.said("olga's")
    assert told[1:] == [f": {REFUSED}", f": {LET_IN.format(account='work')}"]
    assert all("hello" in each for each in cast.platform.said())


async def test_status_says_that_the_key_of_its_model_is_refused(
    autojump_clock: Clock,
) -> None:
    olga = ("fake/olga",)
    cast = Pooled(agents=SMART, retries=RetryPolicy(), approvers=olga)
    cast.work.is_down = fault("auth")
    async with open_company(autojump_clock, cast):
        for _ in range(2):  # the second time `home` is refused, too
            for text in ("hello", "/status"):
                cast.platform.write(text)
                await at_rest(cast)
            cast.home.is_down = fault("auth")
        cast.platform.write("/status", sender="olga", chat="olga's")
        await at_rest(cast)
        cast.work.is_down = cast.home.is_down = None
        await trio.sleep(3_600)
        for text in ("hello", "hello", "/status"):
            cast.platform.write(text)
            await at_rest(cast)
    shown = [x for x in cast.platform.said() if "This conversation" in x]
    assert ["key was refused" in each for each in shown] == [False, True, False]
    (owners,) = [x for x in cast.platform.said("olga's") if "This conversation" in x]
    assert owners.endswith("did not take their key: home, work")


async def test_the_answer_is_whole_although_an_account_broke_off(
    autojump_clock: Clock,
) -> None:
    cast = make_cast()
    half = Says(pieces=("half way ",), pause=1, error=fault("protocol"))
    cast.work.faults.append(half)
    assert await ask(autojump_clock, cast, "one") == ["anna: smart-1@home: one"]
    assert cast.platform.drafts[0].text == "half way "
    assert len({each.turn_id for each in cast.platform.drafts}) == 2


async def test_a_conversation_that_is_too_long_goes_to_the_larger_model(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(larger="cheap")
    cast.work.faults.append(fault("context"))
    assert await ask(autojump_clock, cast, "one") == ["anna: cheap-1@spare: one"]


async def test_who_calls_tools_is_asked_before_who_cannot(
    autojump_clock: Clock,
) -> None:
    agents = {
        "anna": AgentConfig(model="smart", delegates=("ben",)),
        "ben": SMART["anna"],
    }
    cast = make_cast(agents=agents, takes_tools=False, fallbacks=("cheap",))
    said = await ask(autojump_clock, cast, "one", "@ben two")
    assert said[0] == "anna: cheap-1@spare: one"
    assert said[1].startswith("ben: smart-1@work")


async def test_who_cannot_call_tools_is_offered_none(autojump_clock: Clock) -> None:
    agents = {
        "anna": AgentConfig(model="smart", delegates=("ben",)),
        "ben": SMART["anna"],
    }
    cast = make_cast(agents=agents, takes_tools=False)
    await ask(autojump_clock, cast, "one")
    assert cast.work.requests[0].tools == ()


async def test_who_hears_nothing_for_a_minute_is_told_that_it_takes_longer(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(notice_after=60.0)
    cast.work.faults += [Says("at last", after=200), Says("words", after=1)]
    said = await ask(autojump_clock, cast, "one", "two")
    assert said == [
        ": ⏳ This takes a little longer. I am still at it.",
        ": ⏳ I am still at it, for 3 minutes now.",
        "anna: at last",
        "anna: words",
    ]


async def test_a_turn_with_tools_has_more_time_but_not_without_end(
    autojump_clock: Clock,
) -> None:
    agents = {
        "anna": AgentConfig(model="smart", delegates=("ben",)),
        "ben": SMART["anna"],
    }
    cast = make_cast(agents=agents, limits=LimitsConfig(turn_timeout=100.0))
    cast.work.faults += [
        Says(calls=(call("nothing"),), after=90),
        *[Says(calls=(call("nothing"),), after=90)] * 4,
    ]
    await ask(autojump_clock, cast, "one")
    assert 400 <= trio.current_time() < 401
    assert "timed out" in cast.platform.said()[0]


@pytest.mark.parametrize("seconds", [0.0, 0.005, 0.05])
async def test_a_failure_of_the_accounts_wedges_nobody(
    seconds: float, autojump_clock: Clock
) -> None:
    cast = make_cast()
    cast.work.faults.append(fault("rate", 1000.0))
    async with open_company(autojump_clock, cast) as system:
        for number in range(20):
            cast.platform.write("hi", chat=f"room{number}")
        await trio.sleep(seconds)
        accounts = system.find(names.MODELS)
        assert accounts is not None
        accounts.kill()
        await at_rest(cast)
        cast.platform.write("again")
        await at_rest(cast)
    assert len(cast.platform.deliveries) == 21
    assert all(each.agent == "anna" for each in cast.platform.deliveries)
