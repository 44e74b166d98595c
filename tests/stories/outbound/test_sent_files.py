"""Files that agents send: after the words, in order, once, through crashes."""

from __future__ import annotations

import msgspec
import pytest
import trio
import trio.testing

from actors.config.agents import AgentConfig
from actors.config.collaboration import CollaborationConfig
from actors.errors import DeliveryRefusedError
from actors.messages.deliveries import Abilities, Delivery, TakesFiles
from actors.messages.inbound import (
    Image,
    ModelRequest,
    ToolCall,
    ToolContext,
    ToolResult,
    ToolSpec,
)
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Platform,
    Says,
    at_rest,
    call,
    counted,
    echo,
    open_company,
)
from tests.fakes.media import PNG
from tests.fakes.store.crashes import Moment, MortalStore, run_through
from tests.fakes.tools.sent_files import FakeEnclosures

Clock = trio.testing.MockClock

TAKES = Abilities(is_idempotent=True, files=TakesFiles(max_bytes=100, max_caption=20))
FILES = {"a.png": PNG, "b.pdf": b"%PDF-1.4", "c.bin": b"\0" * 200}


class Sends:
    """The tool, over folders in memory."""

    spec = ToolSpec(
        "send_file", "", b"{}", is_repeatable=True, is_own_words=True, effect="read"
    )

    def __init__(self, enclosures: FakeEnclosures) -> None:
        self.enclosures = enclosures

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        wanted: dict[str, str] = msgspec.json.decode(call.arguments)
        if wanted["path"] == "new.png":  # as a program that the agent runs
            self.enclosures.files["new.png"] = PNG + b"new"
            return ToolResult("drawn")
        if wanted["path"] == "b.pdf":
            await trio.sleep(1)
        if wanted["path"] == "shown":
            return ToolResult("shown", images=(Image("image/png", PNG),))
        file = await self.enclosures.enclose(context.agent, **wanted)
        return ToolResult(f"{file.name} goes out", files=(file,))


class Witness(Platform):
    """Reads the bytes of each file, as a transport does."""

    def __init__(self, enclosures: FakeEnclosures) -> None:
        super().__init__()
        self.can = TAKES
        self.enclosures = enclosures
        self.got: list[tuple[str, bytes]] = []
        self.refuses = False

    async def deliver(self, delivery: Delivery) -> str:
        if delivery.file is not None:
            if self.refuses:
                raise DeliveryRefusedError("HTTP 413: too large")
            content = self.enclosures.content(delivery.file)
            if all(delivery.id != each.id for each in self.deliveries):
                self.got.append((delivery.file.name, content))
        return await super().deliver(delivery)

    def seen(self) -> list[str]:
        """Give what people see, files by their names."""
        return [
            f"<{each.file.name}> {each.text}".strip() if each.file else each.text
            for each in self.deliveries
        ]


def stage(*answers: str | Says, deaths: tuple[tuple[int, Moment], ...] = ()) -> Cast:
    """Have Anna give these answers, round by round, to each message."""
    enclosures = FakeEnclosures(FILES)

    def talk(request: ModelRequest) -> str | Says:
        rounds = sum(line.role == "assistant" for line in request.lines)
        return answers[min(rounds, len(answers) - 1)]

    return Cast(
        agents={"anna": AgentConfig(tools=("send_file",))},
        model=FakeModel(talk),
        tools=(Sends(enclosures),),
        enclosures=enclosures,
        platform=Witness(enclosures),
        store=MortalStore(*deaths),
    )


def witness(cast: Cast) -> Witness:
    assert isinstance(cast.platform, Witness)
    return cast.platform


def sends(*paths: str, caption: str = "") -> Says:
    """Send files by the tool."""
    calls = tuple(
        call("send_file", number, path=path, caption=caption)
        for number, path in enumerate(paths)
    )
    return Says(calls=calls)


async def test_files_come_after_the_words_in_their_order(autojump_clock: Clock) -> None:
    cast = stage(sends("a.png", "b.pdf", caption="hm"), "Here they are.")
    async with open_company(autojump_clock, cast):
        cast.platform.write("please")
        await at_rest(cast)
    assert witness(cast).seen() == ["Here they are.", "<a.png> hm", "<b.pdf> hm"]
    assert witness(cast).got == [("a.png", PNG), ("b.pdf", b"%PDF-1.4")]
    ids = [each.id.partition(":")[2] for each in cast.platform.deliveries]
    assert ids == ["0", "1", "2"]
    assert [each.answers_left for each in cast.platform.deliveries] == [2, 0, 0]


async def test_a_file_that_took_longer_keeps_its_place(autojump_clock: Clock) -> None:
    cast = stage(sends("b.pdf", "a.png"), "Here they are.")
    async with open_company(autojump_clock, cast):
        cast.platform.write("please")
        await at_rest(cast)
    assert witness(cast).seen() == ["Here they are.", "<b.pdf>", "<a.png>"]


async def test_what_cannot_go_out_is_told_of(autojump_clock: Clock) -> None:
    cast = stage(sends("c.bin", "a.png"), "Here.")
    async with open_company(autojump_clock, cast):
        cast.platform.write("please")
        await at_rest(cast)
    assert witness(cast).seen() == [
        "Here.",
        "The file c.bin (200 bytes) is larger than this place takes (100 bytes).",
        "<a.png>",
    ]


async def test_a_long_caption_is_said_before_its_file(autojump_clock: Clock) -> None:
    cast = stage(sends("a.png", caption="word " * 9), "Here.")
    async with open_company(autojump_clock, cast):
        cast.platform.write("please")
        await at_rest(cast)
    assert witness(cast).seen() == ["Here.", ("word " * 9).strip(), "<a.png>"]


async def test_a_file_alone_is_an_answer(autojump_clock: Clock) -> None:
    cast = stage(sends("a.png"), "")
    async with open_company(autojump_clock, cast):
        cast.platform.write("please")
        await at_rest(cast)
        assert witness(cast).seen() == ["<a.png>"]
        cast.model.talk = echo
        cast.platform.write("and now?")
        await at_rest(cast)
    told = [line.text for line in cast.model.requests[-1].lines]
    assert "[File sent: a.png]" in told


async def test_a_file_that_its_platform_refuses_is_told_of(
    autojump_clock: Clock,
) -> None:
    cast = stage(sends("a.png", caption="look"), "Here.")
    witness(cast).refuses = True
    async with open_company(autojump_clock, cast):
        cast.platform.write("please")
        await at_rest(cast)
    assert witness(cast).seen() == [
        "Here.",
        "The file a.png (32 bytes) could not be sent: HTTP 413: too large\nlook",
    ]
    assert await cast.outbox() == {"sent": 2}
    found = counted(cast.metrics, "deliveries_total")
    labels = 'deliveries_total{{connector="fake",state="{}"}} {}'
    assert labels.format("file_refused", 1.0) in found
    assert labels.format("sent", 2.0) in found


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", range(1, 11))
async def test_a_crash_at_any_commit_loses_no_file_and_doubles_none(
    number: int, moment: Moment, autojump_clock: Clock
) -> None:
    cast = stage(
        sends("a.png"), sends("b.pdf"), "Both.", deaths=((number, moment), (0, moment))
    )
    cast.platform.write("please")
    assert await run_through(autojump_clock, cast) <= 2
    assert witness(cast).seen() == ["Both.", "<a.png>", "<b.pdf>"]
    assert witness(cast).got == [("a.png", PNG), ("b.pdf", b"%PDF-1.4")]


async def test_more_files_than_one_answer_may_bring_are_refused_in_words(
    autojump_clock: Clock,
) -> None:
    rounds = (
        Says(
            calls=tuple(
                call("send_file", n, path="a.png", caption=f"{n}")
                for n in range(begin, begin + 6)
            )
        )
        for begin in (0, 6)
    )
    cast = stage(*rounds, "Here.")
    async with open_company(autojump_clock, cast):
        cast.platform.write("please")
        await at_rest(cast)
    told = [line.text for line in cast.model.requests[-1].lines if line.role == "tool"]
    assert sum("one answer may bring 10 files" in each for each in told) == 2
    assert [name for name, _ in witness(cast).got] == ["a.png"] * 10


async def test_a_mark_in_an_answer_sends_a_file_and_is_not_shown(
    autojump_clock: Clock,
) -> None:
    text = "See:\n[IMAGE:a.png | the chart]\n[DOCUMENT:b.pdf]\nDone?"
    cast = stage(text)
    async with open_company(autojump_clock, cast):
        cast.platform.write("please [IMAGE:b.pdf]")
        await at_rest(cast)
    assert witness(cast).seen() == [
        "See:\nDone?",
        "<a.png> the chart",
        "<b.pdf>",
    ]


async def test_a_mark_that_comes_to_nothing_is_told_of(autojump_clock: Clock) -> None:
    cast = stage("See:\n[IMAGE:../ben/a.png]")
    async with open_company(autojump_clock, cast):
        cast.platform.write("please")
        await at_rest(cast)
    assert witness(cast).seen() == [
        "See:",
        "⚠ Not done: ../ben/a.png (anna has no file ../ben/a.png)",
    ]


@pytest.mark.parametrize("tools", [(), ("send_file",)])
async def test_marks_are_no_way_round_the_leave_for_the_tool(
    tools: tuple[str, ...], autojump_clock: Clock
) -> None:
    cast = stage("See:\n[IMAGE:a.png]")
    asked = AgentConfig(tools=tools, tool_permissions={"send_file": "ask"})
    cast.agents = {"anna": asked}
    async with open_company(autojump_clock, cast):
        cast.platform.write("please")
        await at_rest(cast)
    why = "may not send files here without being asked" if tools else "may not do that"
    assert witness(cast).seen()[0] == "See:"
    assert why in witness(cast).seen()[1]
    assert not witness(cast).got


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", range(4, 9))
async def test_a_new_picture_goes_out_once_and_is_removed(
    number: int, moment: Moment, autojump_clock: Clock
) -> None:
    cast = stage(sends("new.png"), "Drawn.", deaths=((number, moment), (0, moment)))
    cast.agents = {"anna": AgentConfig(tools=("send_file",), send_new_images=True)}
    cast.platform.write("please")
    await run_through(autojump_clock, cast)
    sent = witness(cast).seen()
    # Cut off in the midst of the turn, it lies where it was.
    is_left = "new.png" in witness(cast).enclosures.files
    assert sent in (["Drawn."], ["Drawn.", "<new.png>"])
    assert is_left or sent == ["Drawn.", "<new.png>"]
    assert "a.png" in witness(cast).enclosures.files


async def test_unless_asked_for_no_new_picture_goes_out(autojump_clock: Clock) -> None:
    cast = stage(sends("new.png"), "Drawn.")
    async with open_company(autojump_clock, cast):
        cast.platform.write("please")
        await at_rest(cast)
    assert witness(cast).seen() == ["Drawn."]
    assert "new.png" in witness(cast).enclosures.files


async def test_what_a_colleague_sends_goes_out_once_with_the_askers_answer(
    autojump_clock: Clock,
) -> None:
    cast = stage()

    def talk(request: ModelRequest) -> str | Says:
        is_first = all(line.role != "tool" for line in request.lines)
        if request.agent == "ben":
            return sends("a.png") if is_first else "It is drawn."
        asks = call("collaborate", agent="ben", message="draw it", turns=1)
        return Says(calls=(asks,)) if is_first else "Ben has drawn it."

    cast.model.talk = talk
    tools = AgentConfig(tools=("send_file",))
    cast.agents = {"anna": AgentConfig(delegates=("ben",)), "ben": tools}
    cast.collaboration = CollaborationConfig(tools="read")
    async with open_company(autojump_clock, cast):
        cast.platform.write("please")
        await at_rest(cast)
    assert witness(cast).seen() == ["Ben has drawn it.", "<a.png>"]


async def test_who_is_handed_work_answers_with_files_in_the_same_chat(
    autojump_clock: Clock,
) -> None:
    cast = stage()

    def talk(request: ModelRequest) -> str | Says:
        if request.agent == "anna":
            return "[DELEGATE:ben] draw it [/DELEGATE]"
        is_first = all(line.role != "tool" for line in request.lines)
        return sends("a.png") if is_first else "Here."

    cast.model.talk = talk
    tools = AgentConfig(tools=("send_file",))
    cast.agents = {"anna": AgentConfig(delegates=("ben",)), "ben": tools}
    async with open_company(autojump_clock, cast):
        cast.platform.write("please")
        await at_rest(cast)
    assert witness(cast).seen()[-2:] == ["Here.", "<a.png>"]
    assert len(witness(cast).got) == 1


@pytest.mark.parametrize("is_on", [True, False])
async def test_a_tools_pictures_go_out_if_the_settings_say_so(
    autojump_clock: Clock, *, is_on: bool
) -> None:
    cast = stage(sends("shown"), "See.")
    cast.agents = {"anna": AgentConfig(tools=("send_file",), send_tool_images=is_on)}
    async with open_company(autojump_clock, cast):
        cast.platform.write("please")
        await at_rest(cast)
    assert witness(cast).seen() == ["See.", *(["<send_file-1>"] if is_on else [])]


async def test_an_outbox_row_written_before_has_no_file(autojump_clock: Clock) -> None:
    old = b'{"id":"m:0","correlation_id":"m","address":["fake","1",""],'
    old = old.replace(b'["fake","1",""]', b'{"connector":"fake","chat":"1"}')
    found = msgspec.json.decode(old + b'"agent":"anna","text":"x"}', type=Delivery)
    assert found.file is None
    assert autojump_clock.rate == 0
