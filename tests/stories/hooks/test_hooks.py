"""Hooks change words or hold them back, and nothing is lost, doubled or shown early."""

from __future__ import annotations

import msgspec
import pytest
import trio.testing

from actors.config.agents import AgentConfig
from actors.hooks.book import AskHook
from actors.hooks.chain import BROKEN, Event, Verdict
from actors.messages.inbound import Inbound
from connectors.hooks.hook import HOOK, HookError, HookRecord
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Platform,
    Says,
    at_rest,
    counted,
    open_company,
    until,
)
from tests.fakes.company.hooked import Talk, hooked, passes, refuses, shouts
from tests.fakes.company.shell import Office

Clock = trio.testing.MockClock

SENDING = "message_sending"


def kept_text(cast: Cast) -> list[str]:
    """Give what the inbox says was written."""
    rows = cast.store._rows.inbox.values()
    return [msgspec.json.decode(row.body, type=Inbound).text for row in rows]


def record_of(cast: Cast) -> HookRecord:
    """Give what a hook last wrote down of itself."""
    (row,) = (row for row in cast.store._rows.records.values() if row.kind == HOOK)
    return msgspec.json.decode(row.body, type=HookRecord)


def state_of(cast: Cast) -> tuple[str, str]:
    """Give its state, and why it is in it."""
    record = record_of(cast)
    return record.state, record.reason


async def hangs(_asked: AskHook) -> Verdict:
    await trio.sleep_forever()
    raise AssertionError


async def test_changed_words_are_what_is_stored_and_heard(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    hooked(cast, shouts)
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
    assert cast.platform.said() == ["anna: anna heard HELLO"]
    assert kept_text(cast) == ["HELLO"]


async def test_what_a_hook_does_is_written_down_while_it_starts_runs_and_ends(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    hooked(cast, shouts).start_after = 10.0
    async with open_company(autojump_clock, cast):
        await trio.sleep(5)
        assert state_of(cast) == ("starting", "it is being started")
        await trio.sleep(10)
        assert state_of(cast) == ("up", "")
    assert state_of(cast) == ("down", "Callboard was stopped")


async def fails(_asked: AskHook) -> Verdict:
    raise HookError("it fell over", "failed")


@pytest.mark.parametrize(
    ("talk", "event", "done"),
    [
        (passes, "message_received", 'questions_total{hook="h",outcome="continue"}'),
        (shouts, "message_received", 'questions_total{hook="h",outcome="change"}'),
        (refuses, "message_received", 'questions_total{hook="h",outcome="cancel"}'),
        (fails, "message_received", 'questions_total{hook="h",outcome="failed"}'),
        (passes, "turn_finished", 'notices_total{hook="h",outcome="told"}'),
    ],
)
async def test_what_a_hook_has_done_is_counted_and_written_down_soon(
    talk: Talk, event: Event, done: str, autojump_clock: Clock
) -> None:
    cast = Cast()
    hooked(cast, talk, event)
    async with open_company(autojump_clock, cast):
        await trio.sleep(5)
        soon = record_of(cast)
        for text in ("one", "two"):
            cast.platform.write(text)
            await at_rest(cast)
            await trio.sleep(5)
            soon = record_of(cast)
        shown = counted(cast.metrics, "hook_")
    last = record_of(cast)
    assert f"hook_{done} 2.0" in shown
    assert 'hook_up{hook="h"} 1.0' in shown
    assert 'hook_up{hook="h"} 1.0' not in counted(cast.metrics, "hook_")
    assert soon.counts == last.counts
    assert soon.counts != type(soon.counts)()
    assert (soon.last_error, soon.last_error_at) == (
        last.last_error,
        last.last_error_at,
    )


async def test_words_that_are_held_back_are_dropped_and_their_writer_is_told_why(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    hooked(cast, refuses)
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
    assert cast.platform.said() == [": ⚠️ This message was not taken in: not today"]
    assert await cast.inbox() == {"dropped": 1}
    assert cast.model.requests == []


async def test_a_message_is_acknowledged_before_its_hooks_are_asked(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    acknowledged: list[int] = []

    async def looks(_asked: AskHook) -> Verdict:
        await trio.sleep(1)
        acknowledged.append(len(cast.platform.acknowledged))
        return Verdict()

    hooked(cast, looks)
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
    assert acknowledged == [1]


async def test_hooks_are_asked_in_order_and_each_reads_what_the_one_before_made(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    hooked(cast, shouts, name="first")
    second = hooked(cast, refuses, name="second")
    third = hooked(cast, passes, name="third")
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
    assert (second.texts, third.texts) == (["HELLO"], [])


async def test_a_hook_that_hangs_lets_words_pass_when_its_time_is_over(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    hooked(cast, hangs, timeout=2.0)
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast, within=4.0)
    assert cast.platform.said() == ["anna: anna heard hello"]


async def test_a_hook_that_hangs_holds_words_back_if_it_is_to(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    hooked(cast, hangs, timeout=2.0, on_failure="closed")
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
    assert cast.platform.said() == [f": ⚠️ This message was not taken in: {BROKEN}"]


async def test_a_slow_hook_keeps_its_own_chat_waiting_and_no_other(
    autojump_clock: Clock,
) -> None:
    cast = Cast()

    async def slow(asked: AskHook) -> Verdict:
        await trio.sleep(3 if asked.text == "one" else 0)
        return Verdict()

    hooked(cast, slow)
    async with open_company(autojump_clock, cast):
        cast.platform.write("one", chat="a")
        cast.platform.write("two", chat="a")
        cast.platform.write("three", chat="b")
        await until(lambda: cast.platform.said("b"), within=1.0)
        assert cast.platform.said("a") == []
        await at_rest(cast)
    assert cast.platform.said("a") == ["anna: anna heard one", "anna: anna heard two"]


async def test_a_process_that_ends_in_mid_hook_asks_again_and_loses_nothing(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    hook = hooked(cast, hangs, timeout=60.0)
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await until(lambda: hook.asked)
    cast.restart()
    hook.talk = shouts
    async with open_company(autojump_clock, cast):
        await at_rest(cast)
    assert cast.platform.said() == ["anna: anna heard HELLO"]
    assert len({each.about.id for each in hook.asked}) == 1


async def test_what_hooks_said_is_not_asked_again_after_a_restart(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(lambda _request: Says("late", after=60.0)))
    hook = hooked(cast, shouts)
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await until(lambda: cast.model.requests)
    cast.restart()
    hook.talk = refuses
    async with open_company(autojump_clock, cast):
        await at_rest(cast)
    assert hook.texts == ["hello"]
    assert cast.platform.said() == ["anna: late"]


async def test_nobody_is_kept_from_stopping(autojump_clock: Clock) -> None:
    cast = Cast(model=FakeModel(lambda _request: Says("late", after=600.0)))
    hook = hooked(cast, passes)
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await until(lambda: cast.model.requests)
        cast.platform.write("/stop")
        await at_rest(cast, within=30.0)
    assert hook.texts == ["hello"]


async def test_what_comes_in_while_a_hook_is_being_started_waits_for_it(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    hook = hooked(cast, shouts)
    hook.start_after = 3.0
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
    assert cast.platform.said() == ["anna: anna heard HELLO"]


async def test_a_hook_that_never_starts_keeps_few_waiting(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    hook = hooked(cast, shouts, timeout=2.0)
    hook.start_after = 1_000.0
    async with open_company(autojump_clock, cast):
        for number in range(20):
            cast.platform.write(f"words {number}")
        await at_rest(cast, within=30.0)
    assert await cast.inbox() == {"replied": 20}


# --- what agents say -------------------------------------------------------------


async def test_an_answer_is_said_and_remembered_as_hooks_leave_it(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    hook = hooked(cast, shouts, SENDING)
    async with open_company(autojump_clock, cast):
        cast.platform.write("one")
        await at_rest(cast)
        cast.platform.write("two")
        await at_rest(cast)
    assert cast.platform.said() == ["anna: ANNA HEARD ONE", "anna: ANNA HEARD TWO"]
    assert hook.texts == ["anna heard one", "anna heard two"]
    remembered = [x.text for x in cast.model.requests[-1].lines]
    assert "ANNA HEARD ONE" in remembered
    assert "anna heard one" not in remembered


async def test_an_answer_that_is_held_back_is_never_seen(
    autojump_clock: Clock,
) -> None:
    pieces = ("The ", "secret ", "is 42.")
    says = Says("".join(pieces), pieces=pieces, pause=1.0)
    cast = Cast(model=FakeModel(lambda _request: says))
    hooked(cast, refuses, SENDING)
    async with open_company(autojump_clock, cast):
        cast.platform.write("tell me")
        await at_rest(cast)
    assert cast.platform.said() in ([], ["anna: "])
    assert not any("secret" in each.text for each in cast.platform.shown)
    assert await cast.inbox() == {"replied": 1}


async def test_a_text_made_longer_is_cut_into_parts_anew(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    can = cast.platform.can
    cast.platform.can = msgspec.structs.replace(can, max_part_chars=1_000)

    async def swells(_asked: AskHook) -> Verdict:
        return Verdict("change", "word " * 10_000)

    hooked(cast, swells, SENDING)
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
    said = [each.text for each in cast.platform.deliveries]
    assert len(said) > 15
    assert 19_000 < len(" ".join(said)) <= 20_000
    assert {each.address.chat for each in cast.platform.deliveries} == {"room"}


async def test_commands_are_answered_without_asking(autojump_clock: Clock) -> None:
    cast = Cast()
    hook = hooked(cast, refuses, SENDING)
    async with open_company(autojump_clock, cast):
        cast.platform.write("/help")
        await at_rest(cast)
    assert hook.asked == []
    assert cast.platform.said()


async def test_hooks_of_other_agents_are_not_asked(autojump_clock: Clock) -> None:
    cast = Cast(agents={"anna": AgentConfig(), "ben": AgentConfig()})
    hook = hooked(cast, refuses, SENDING, agents=("ben",))
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
    assert hook.asked == []
    assert cast.platform.said() == ["anna: anna heard hello"]


# --- what hooks have for themselves -------------------------------------------------


async def opens_gates(asked: AskHook) -> Verdict:
    if "gate" in asked.text:
        return Verdict("consume", "The gate is open.")
    return Verdict("consume") if asked.text == "hush" else Verdict()


async def test_a_hook_may_have_a_message_for_itself_and_answer_it(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    hook = hooked(cast, opens_gates, "message_heard", agents=("anna",))
    async with open_company(autojump_clock, cast):
        for text in ("open the gate", "hush", "/help", "hello"):
            cast.platform.write(text)
            await at_rest(cast)
    said = cast.platform.said()
    assert (said[0], said[-1]) == (": The gate is open.", "anna: anna heard hello")
    assert hook.texts == ["open the gate", "hush", "hello"]
    assert len(cast.model.requests) == 1
    assert await cast.inbox() == {"replied": 4}


async def test_one_that_hangs_leaves_the_message_to_the_agent(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    hooked(cast, hangs, "message_heard", timeout=2.0)
    async with open_company(autojump_clock, cast):
        cast.platform.write("open the gate", chat="a")
        cast.platform.write("hello", chat="b")
        await at_rest(cast)
    assert cast.platform.said("a") == ["anna: anna heard open the gate"]
    assert cast.platform.said("b") == ["anna: anna heard hello"]


async def test_what_was_consumed_before_a_process_ended_stays_so(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    hook = hooked(cast, hangs, "message_heard", timeout=60.0)
    async with open_company(autojump_clock, cast):
        cast.platform.write("open the gate")
        await until(lambda: hook.asked)
    cast.restart()
    hook.talk = opens_gates
    async with open_company(autojump_clock, cast):
        await at_rest(cast)
    assert cast.platform.said() == [": The gate is open."]
    assert cast.model.requests == []


async def hangs_at_more(asked: AskHook) -> Verdict:
    if asked.text.endswith("more"):
        await trio.sleep(50.0)
    return Verdict()


async def test_an_answer_that_is_ready_does_not_wait_for_a_hook(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(lambda _request: Says("ready", after=5.0)))
    hooked(cast, hangs_at_more, "message_heard", timeout=60.0)
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await until(lambda: cast.model.requests)
        cast.platform.write("more")
        await until(cast.platform.said, within=10.0)
        await at_rest(cast)
    assert cast.platform.said() == ["anna: ready", "anna: ready"]


async def test_a_stop_does_not_wait_for_a_hook_nor_do_those_behind_what_it_stops(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(lambda _request: Says("late", after=600.0)))
    hooked(cast, hangs_at_more, "message_heard", timeout=60.0)
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await until(lambda: cast.model.requests)
        cast.platform.write("more")
        cast.platform.write("/stop")
        await at_rest(cast, within=5.0)
    assert await cast.inbox() == {"cancelled": 2, "replied": 1}


async def test_what_waits_behind_a_message_that_is_stopped_goes_on_at_once(
    autojump_clock: Clock,
) -> None:
    cast = Cast(platform=Platform(is_direct=False))
    hooked(cast, hangs_at_more, "message_heard", timeout=60.0)
    async with open_company(autojump_clock, cast):
        for sender, text in (("zoe", "@anna more"), ("sam", "@anna hello")):
            cast.platform.write(text, sender=sender)
            await trio.sleep(1.0)
        assert cast.platform.said() == []
        cast.platform.write("/stop", sender="zoe")
        await trio.sleep(1.0)
        assert "anna: anna heard hello" in cast.platform.said()
        await trio.sleep(100.0)
    assert len(cast.model.requests) == 1
    assert (await cast.inbox())["cancelled"] == 1


async def test_nothing_comes_of_what_a_hook_says_of_a_message_that_was_stopped(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    hooked(cast, hangs_at_more, "message_heard", timeout=60.0)
    async with open_company(autojump_clock, cast):
        cast.platform.write("more")
        await trio.sleep(1.0)
        cast.platform.write("/stop")
        await trio.sleep(100.0)
    assert cast.model.requests == []
    assert await cast.inbox() == {"cancelled": 1, "replied": 1}


async def test_words_behind_a_hook_keep_their_order(autojump_clock: Clock) -> None:
    cast = Cast()
    hooked(cast, hangs_at_more, "message_heard", timeout=60.0)
    async with open_company(autojump_clock, cast):
        for text in ("more", "two", "/new", "three"):
            cast.platform.write(text)
        await at_rest(cast)
    said = cast.platform.said()
    assert said[:2] == ["anna: anna heard more", "anna: anna heard two"]
    assert said[-1] == "anna: anna heard three"
    assert len(cast.model.requests[-1].lines) == 1, "it begins anew"


async def test_a_stop_does_not_wait_for_a_hook_about_an_answer(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    hook = hooked(cast, hangs, SENDING, timeout=60.0)
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await until(lambda: hook.asked)
        cast.platform.write("/stop")
        await at_rest(cast, within=5.0)
    assert await cast.inbox() == {"cancelled": 1, "replied": 1}


# --- what is told ----------------------------------------------------------------


async def test_a_finished_turn_is_told_with_what_it_took(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    hook = hooked(cast, passes, "turn_finished")
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await until(lambda: hook.told)
    (told,) = hook.told
    assert (told.text, told.about.agent) == ("anna heard hello", "anna")
    assert (told.ended.state, told.ended.input_tokens) == ("replied", 3)
    assert hook.asked == []


async def test_a_hook_that_ends_is_started_again(autojump_clock: Clock) -> None:
    cast = Cast()
    hook = hooked(cast, shouts)
    async with open_company(autojump_clock, cast):
        await until(lambda: hook.runs == 1)
        hook.ending.come("it fell over")
        await until(lambda: hook.runs == 2)
        cast.platform.write("hello")
        await at_rest(cast)
    assert cast.platform.said() == ["anna: anna heard HELLO"]


async def test_who_waits_for_a_hook_may_stop_what_runs(autojump_clock: Clock) -> None:
    cast = Cast(model=FakeModel(lambda _request: Says("late", after=600.0)))
    hook = hooked(cast, passes, timeout=60.0)
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await until(lambda: cast.model.requests)
        hook.talk = hangs
        cast.platform.write("more")
        cast.platform.write("/stop")
        await until(lambda: cast.model.cancelled, within=10.0)


@pytest.mark.parametrize("word", ["yes", "/approve {id}"])
async def test_words_that_a_hook_made_give_no_leave(
    word: str, autojump_clock: Clock
) -> None:
    office = Office(autojump_clock)
    asked_for: list[str] = []

    async def agrees(asked: AskHook) -> Verdict:
        if asked.text != "no idea":
            return Verdict()
        return Verdict("change", word.format(id=asked_for[0]))

    hooked(office.cast, agrees)
    async with open_company(autojump_clock, office.cast):
        office.platform.write("run ls")
        asked_for.append(await office.asked())
        office.platform.write("no idea", sender="olga")
        await at_rest(office.cast)
    assert office.shell.ran == []
    assert not office.counted("approved")


@pytest.mark.parametrize("word", ["yes", "no"])
async def test_a_chat_goes_on_behind_an_answer_for_leave_that_a_hook_has_read(
    word: str, autojump_clock: Clock
) -> None:
    office = Office(autojump_clock)
    hook = hooked(office.cast, passes)
    async with open_company(autojump_clock, office.cast):
        office.platform.write("run ls")
        await office.asked()
        office.platform.write(word, sender="olga")
        office.platform.write("hello")
        await at_rest(office.cast)
        office.platform.write("once more")
        await at_rest(office.cast)
    assert hook.texts == ["run ls", word, "hello", "once more"]
    assert len(office.shell.ran) == (word == "yes")
    assert office.said()[-2:] == ["anna: to hello", "anna: to once more"]
    assert "accepted" not in await office.cast.inbox()


@pytest.mark.parametrize(
    ("talk", "event", "outcome"),
    [
        (refuses, "message_received", "hook_cancelled"),
        (shouts, "message_received", "hook_changed"),
        (opens_gates, "message_heard", "hook_consumed"),
        (refuses, SENDING, "hook_withheld"),
        (shouts, SENDING, "hook_reworded"),
        (passes, SENDING, ""),
    ],
)
async def test_what_a_hook_makes_of_a_message_is_counted_once(
    talk: Talk, event: Event, outcome: str, autojump_clock: Clock
) -> None:
    cast = Cast()
    hooked(cast, talk, event)
    async with open_company(autojump_clock, cast):
        cast.platform.write("open the gate")
        await at_rest(cast)
    found = counted(cast.metrics, 'messages_total{connector="fake",outcome="hook')
    line = f'messages_total{{connector="fake",outcome="{outcome}"}} 1.0'
    assert found == [line] * bool(outcome)
