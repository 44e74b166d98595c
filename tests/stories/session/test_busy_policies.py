"""What a busy conversation does with further messages, in a whole company."""

from __future__ import annotations

import msgspec
import trio
import trio.testing

from actors.config.agents import AgentConfig
from actors.config.limits import LimitsConfig
from actors.config.sessions import BufferingConfig, BusyPolicyConfig, WatchdogConfig
from actors.journal.records import AuditRecord
from actors.messages.busy_policies import HEADER
from actors.messages.inbound import (
    Attachment,
    ModelRequest,
    ToolCall,
    ToolContext,
    ToolResult,
    ToolSpec,
)
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Says,
    at_rest,
    call,
    counted,
    heard,
    open_company,
    until,
)

Clock = trio.testing.MockClock

FOLLOWUP = BufferingConfig(policy="followup")
DEBOUNCED = BufferingConfig(policy="followup", debounce=2.0, longest_debounce=5.0)
INTERRUPT = BufferingConfig(policy="interrupt")
STEER = BufferingConfig(policy="steer")
PHOTO = Attachment("image", "cat.png", "image/png", content=b"cat")


def slowly(request: ModelRequest) -> Says:
    """Take a minute over anything."""
    return Says(f"to {heard(request)}", after=60.0)


def asked(cast: Cast) -> list[str]:
    """Give the question of each request."""
    return [heard(each) for each in cast.model.requests]


async def audit_of(cast: Cast) -> dict[str, AuditRecord]:
    rows = await cast.store.records_since("audit", 0.0, 0, 100)
    read = [msgspec.json.decode(row.body, type=AuditRecord) for row in rows]
    return {each.input: each for each in read}


async def say(cast: Cast, *texts: str, pause: float = 1.0, sender: str = "zoe") -> None:
    for text in texts:
        cast.platform.write(text, sender=sender)
        await trio.sleep(pause)


# --- follow-up ----------------------------------------------------------------------


async def test_questions_mid_answer_are_answered_together(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(slowly), buffering=FOLLOWUP)
    async with open_company(autojump_clock, cast):
        await say(cast, "one", "two", "three")
        await at_rest(cast)
    merged = f"{HEADER}\n---\n#1: two\n---\n#2: three"
    assert asked(cast) == ["one", merged]
    assert cast.platform.said() == ["anna: to one", f"anna: to {merged}"]
    assert [x.reply_to for x in cast.platform.deliveries] == ["fake-1", "fake-3"]
    assert await cast.inbox() == {"replied": 3}
    audit = await audit_of(cast)
    assert {text: row.reason for text, row in audit.items()} == {
        "one": "ok",
        "two": "ok",
        "three": "merged",
    }
    assert audit["three"].output == audit["two"].output


async def test_three_quick_messages_are_one_question(autojump_clock: Clock) -> None:
    cast = Cast(buffering=DEBOUNCED)
    async with open_company(autojump_clock, cast):
        await say(cast, "look", "at", "this")
        assert cast.model.requests == []
        await at_rest(cast)
        lines = cast.model.requests[0].lines
    assert [line.text for line in lines] == ["look\nat\nthis"]
    assert len(cast.platform.said()) == 1
    assert await cast.inbox() == {"replied": 3}


async def test_nobody_waits_longer_than_the_longest_time(autojump_clock: Clock) -> None:
    cast = Cast(buffering=DEBOUNCED)
    async with open_company(autojump_clock, cast):
        began = trio.current_time()
        await say(cast, *"abcdefg", pause=1.5)
        await at_rest(cast)
    assert asked(cast) == ["a\nb\nc\nd", "e\nf\ng"]
    assert trio.current_time() - began < 15


async def test_a_picture_goes_at_once_with_the_words_before_it(
    autojump_clock: Clock,
) -> None:
    cast = Cast(buffering=DEBOUNCED)
    async with open_company(autojump_clock, cast):
        began = trio.current_time()
        cast.platform.write("my cat:")
        cast.platform.write("see?", attachments=(PHOTO,))
        await until(lambda: cast.platform.deliveries)
        assert trio.current_time() - began < 1
        await at_rest(cast)
    (question,) = asked(cast)
    assert question.startswith("my cat:\nsee?\n\n[What came along was not read")


async def test_words_of_others_are_never_joined(autojump_clock: Clock) -> None:
    patient = WatchdogConfig(quiet_after=0.0)
    cast = Cast(model=FakeModel(slowly), buffering=FOLLOWUP, watchdog=patient)
    cast.platform.is_direct = False
    async with open_company(autojump_clock, cast):
        await say(cast, "@anna one", "@anna two")
        await say(cast, "@anna and me?", sender="yan")
        await say(cast, "@anna three")
        await at_rest(cast)
    one, other, two = [request.lines[-1].text for request in cast.model.requests]
    assert one == "[zoe]: one"
    assert other.endswith("[yan]: and me?")  # who had no turn yet is before zoe
    assert two.endswith("#1: @anna two\n---\n#2: @anna three")
    replied = [each.reply_to for each in cast.platform.deliveries]
    assert replied == ["fake-1", "fake-3", "fake-4"]
    assert await cast.inbox() == {"replied": 4}


async def test_the_oldest_goes_with_a_word_of_why(autojump_clock: Clock) -> None:
    cast = Cast(
        model=FakeModel(slowly),
        buffering=BufferingConfig(policy="followup", overflow="oldest"),
        limits=LimitsConfig(max_waiting=2),
    )
    async with open_company(autojump_clock, cast):
        await say(cast, "one", "two", "three", "four")
        await at_rest(cast)
    dropped, *_ = cast.platform.deliveries
    assert (dropped.reply_to, dropped.trouble) == ("fake-2", "busy")
    assert "I let the oldest go: “two”." in dropped.text
    overflow = 'buffered_total{agent="anna",outcome="overflow"} 1.0'
    assert overflow in counted(cast.metrics, "buffered")
    assert await cast.inbox() == {"dropped": 1, "replied": 3}
    assert asked(cast)[1].endswith("#1: three\n---\n#2: four")


async def test_the_oldest_is_told_in_one_line(autojump_clock: Clock) -> None:
    cast = Cast(
        model=FakeModel(slowly),
        buffering=BufferingConfig(policy="followup", overflow="summarise"),
        limits=LimitsConfig(max_waiting=1),
    )
    async with open_company(autojump_clock, cast):
        await say(cast, "one", "so\nmuch " * 40, "four")
        await at_rest(cast)
    first, second = asked(cast)[1].split("\n---\n")[1:]
    assert (len(first), first[-1]) == (len("#1: ") + 80, "…")
    assert second == "#2: four"
    assert await cast.inbox() == {"replied": 3}


async def test_all_of_a_turn_wait_and_are_stopped_together(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(slowly), buffering=FOLLOWUP)
    async with open_company(autojump_clock, cast):
        await say(cast, "one", "two", "three")
        await until(lambda: len(cast.model.requests) == 2)
        cast.platform.write("/stop")
        await at_rest(cast)
    assert cast.platform.said()[1:] == [": (stopped)", ": Stopped."]
    assert await cast.inbox() == {"cancelled": 2, "replied": 2}


# --- serial -------------------------------------------------------------------------


async def test_who_comes_next_is_told_so_once(autojump_clock: Clock) -> None:
    busy = BufferingConfig(note=True)
    cast = Cast(model=FakeModel(slowly), buffering=busy)
    async with open_company(autojump_clock, cast):
        await say(cast, "one", "two", "three")
        await at_rest(cast)
    note = ": Got it, I'll get to this next."
    assert cast.platform.said() == [
        note,
        "anna: to one",
        "anna: to two",
        "anna: to three",
    ]


async def test_another_chat_has_another_policy(autojump_clock: Clock) -> None:
    table = BusyPolicyConfig(chat="team*", policy="followup")
    cast = Cast(model=FakeModel(slowly), busy_policies=(table,))
    async with open_company(autojump_clock, cast):
        for chat in ("team-1", "home"):
            for text in ("one", "two", "three"):
                cast.platform.write(text, chat=chat)
        await at_rest(cast)
    assert len(cast.platform.said("team-1")) == 2
    assert len(cast.platform.said("home")) == 3


# --- interrupt ----------------------------------------------------------------------


async def test_new_words_cancel_the_answer_and_both_are_asked(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(slowly), buffering=INTERRUPT)
    async with open_company(autojump_clock, cast):
        await say(cast, "book Rome", "no, Oslo", pause=10.0)
        await at_rest(cast)
        cast.platform.write("thanks")
        await at_rest(cast)
    assert asked(cast)[1] == "book Rome\n\nno, Oslo"
    assert len(cast.model.cancelled) == 1
    assert cast.platform.said()[0] == "anna: to book Rome\n\nno, Oslo"
    roles = [line.role for line in cast.model.requests[2].lines]
    assert roles == ["user", "assistant", "user"]
    assert await cast.inbox() == {"cancelled": 1, "replied": 2}
    assert (await audit_of(cast))["book Rome"].reason == "interrupted"


async def test_nobody_s_answer_ends_by_what_somebody_else_writes(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(slowly), buffering=INTERRUPT)
    cast.platform.is_direct = False
    async with open_company(autojump_clock, cast):
        await say(cast, "@anna one")
        await say(cast, "@anna two", sender="yan")
        await at_rest(cast)
    assert cast.model.cancelled == []
    assert await cast.inbox() == {"replied": 2}


async def test_an_interruption_leaves_alone_what_an_earlier_answer_handed_on(
    autojump_clock: Clock,
) -> None:
    def talk(request: ModelRequest) -> Says:
        words = heard(request)
        if request.agent == "ben":
            return Says("the report", after=60.0)
        if words == "a report, please":
            return Says("[DELEGATE:ben] write the report [/DELEGATE]")
        return Says("Sunny.", after=5.0)

    agents = {"anna": AgentConfig(delegates=("ben",)), "ben": AgentConfig()}
    cast = Cast(model=FakeModel(talk), agents=agents, buffering=INTERRUPT)
    async with open_company(autojump_clock, cast):
        await say(cast, "a report, please", pause=10.0)
        await say(cast, "thanks", "the weather?")
        await at_rest(cast)
    assert [each.agent for each in cast.model.cancelled] == ["anna"]
    assert cast.platform.said()[1:] == ["anna: Sunny.", "ben: the report"]


# --- steer --------------------------------------------------------------------------


class Search:
    """A tool that takes ten seconds."""

    spec = ToolSpec("search", "", b"{}", is_repeatable=True, effect="read")

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        self.calls.append(f"{context.correlation_id}/{call.id}")
        await trio.sleep(10.0)
        return ToolResult("found")


def working(request: ModelRequest) -> Says:
    """Search twice, then tell what was asked meanwhile."""
    lines = request.lines
    first = max(n for n, x in enumerate(lines) if x.text.endswith("search"))
    done = sum(line.role == "tool" for line in lines[first:])
    if done < 2 and request.tools:
        return Says(calls=(call("search", done + 1, q=str(done)),), after=1.0)
    said = [x.text for x in lines[first + 1 :] if x.role == "user"]
    return Says(f"Done. {said}", after=1.0)


def steered(talk: FakeModel | None = None) -> Cast:
    return Cast(
        agents={"anna": AgentConfig(tools=("search",), autonomy="full")},
        model=talk or FakeModel(working),
        tools=(Search(),),
        buffering=STEER,
    )


async def test_words_go_into_the_tool_loop(autojump_clock: Clock) -> None:
    cast = steered()
    async with open_company(autojump_clock, cast):
        await say(cast, "search", "in Oslo, please", pause=5.0)
        await at_rest(cast)
        cast.platform.write("search")
        await at_rest(cast)
    second = cast.model.requests[1].lines
    assert [line.role for line in second] == ["user", "assistant", "tool", "user"]
    assert second[-1].text.endswith(":)\nzoe: in Oslo, please")
    assert len([x for x in cast.platform.said() if x.startswith("anna: Done")]) == 2
    assert await cast.inbox() == {"replied": 3}
    assert (await audit_of(cast))["in Oslo, please"].reason == "steered"
    history = [line.text for line in cast.model.requests[3].lines]
    assert history[0] == "search\n\nin Oslo, please"


async def test_what_comes_too_late_for_the_last_round_follows(
    autojump_clock: Clock,
) -> None:
    cast = steered()
    async with open_company(autojump_clock, cast):
        cast.platform.write("search")
        await until(lambda: len(cast.model.requests) == 3)
        await say(cast, "late search")
        await at_rest(cast)
    assert cast.platform.said()[0] == "anna: Done. []"
    assert len(cast.platform.said()) == 2
    assert await cast.inbox() == {"replied": 2}


async def test_no_more_than_five_words_go_into_one_turn(autojump_clock: Clock) -> None:
    cast = steered()
    async with open_company(autojump_clock, cast):
        await say(cast, "search", *(f"{n} search" for n in range(7)), pause=1.2)
        await at_rest(cast)
    third = [x.text for x in cast.model.requests[2].lines if x.role == "user"]
    assert len(third) == 1 + 5
    reasons = [row.reason for row in (await audit_of(cast)).values()]
    assert sorted(reasons) == ["merged", "ok", "ok", *["steered"] * 5]
