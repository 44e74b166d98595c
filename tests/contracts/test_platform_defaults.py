"""What people see on each platform with the settings that come with the program.

Each case gives a few words on what was seen, which are the cell of its platform in the
table of docs/platforms.md. The company's time runs faster than the machine's, and where
a quick answer is measured it stands still.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from actors.journal.outbox import GOES_ON
from tests.fakes.qq.gateway import open_gateway
from tests.fakes.qq.server import FakeQQ
from tests.support.chat.discord_bed import open_bed
from tests.support.defaults import local, places
from tests.support.defaults.company import LONG, RATE, after_crash, crash, running
from tests.support.defaults.places import Place, Said
from tests.support.defaults.waiting import until

PAGE = Path(__file__).parents[2] / "docs" / "platforms.md"
CODE = re.compile(r"\b[0-9A-Z]{4}-[0-9A-Z]{4}\b")
REFUSED = "The model refused to answer"
MADE: dict[str, Callable[[], Place]] = {
    "Telegram": places.Telegram,
    "Matrix": places.Matrix,
    "Slack": places.Slack,
    "WhatsApp": places.WhatsApp,
    "ElizaOS web": local.Eliza,
    "WebSocket": local.Socket,
    "Web page": local.Page,
    "Terminal": local.Terminal,
    "OpenAI HTTP": local.Http,
}
PLATFORMS = ("Discord", "QQ", *MADE)


@asynccontextmanager
async def open_place(name: str) -> AsyncGenerator[Place]:
    """Open a platform; no program is connected to it yet."""
    if name == "Discord":
        async with open_bed("anna", "ben") as bed:
            yield places.Discord(bed)
        return
    if name == "QQ":
        async with open_gateway(FakeQQ()) as gateway:
            yield places.QQ(gateway)
        return
    await trio.lowlevel.checkpoint()
    yield MADE[name]()


async def answers(place: Place, count: int, person: str = "owner") -> list[Said]:
    """Wait until somebody has read so many messages; give them, and all after them."""

    async def are_there() -> bool:
        return len(await place.read(person)) >= count

    await until(are_there)
    return await place.read(person)


async def answered(place: Place, *texts: str) -> None:
    """Wait until the owner has read just this."""

    async def is_so() -> bool:
        return tuple(x.text for x in await place.read("owner")) == texts

    await until(is_so)


async def owner(place: Place, folder: Path, clock: trio.testing.MockClock) -> str:
    async with running(folder, place, clock):
        await place.write("owner", "hello")
        assert [x[:2] for x in await answers(place, 1)] == [("anna", "Anna here.")]
    return "answered"


async def colleague(place: Place, folder: Path, clock: trio.testing.MockClock) -> str:
    if not place.has_strangers:
        return "–"
    async with running(folder, place, clock):
        await place.write("colleague", "hello")
        (told,) = await answers(place, 1, "colleague")
        code = CODE.search(told.text)
        assert code is not None
        await place.write("owner", f"/pair approve {code[0]}")
        assert len(await answers(place, 2, "colleague")) == 2
        await place.write("colleague", "hello")
        assert (await answers(place, 3, "colleague"))[2].text == "Anna here."
    return "code, let in, answered"


async def stranger(place: Place, folder: Path, clock: trio.testing.MockClock) -> str:
    async with running(folder, place, clock):
        if isinstance(place, local.Page):
            return f"led to {await place.stranger()}"
        await place.write("stranger", "hello")
        (told,) = await answers(place, 1, "stranger")
        if told.text == "Anna here.":
            return "answered"
        assert CODE.search(told.text)
        await place.write("stranger", "hello?")
        await place.write("owner", "hello")
        await answers(place, 1)
        assert await place.read("stranger") == [told]
    return "told a code, once"


async def both(place: Place, folder: Path, clock: trio.testing.MockClock) -> str:
    if not place.has_groups:
        return "–"
    async with running(folder, place, clock):
        asked = await place.call_both()

        async def have_answered() -> bool:
            return len(await place.read_group()) >= 2

        await until(have_answered)
        said = await place.read_group()
        await place.write("owner", "hello")
        await until(lambda: place.read("owner"))
        if place.has_member_ids:
            assert all("let you in as qq/OWNEROF" in each.text for each in said)
            return "told as whom to be let in"
        assert sorted(x[:2] for x in said) == [
            ("anna", "Anna here."),
            ("ben", "Ben here."),
        ]
    marks = {each.to for each in said}
    assert marks in ({asked}, {""})
    return "both, no mark" if marks == {""} else "both reply to it"


async def long(place: Place, folder: Path, clock: trio.testing.MockClock) -> str:
    chapters = re.findall(r"Chapter \d+", LONG)

    async def is_whole() -> bool:
        said = "".join(each.text for each in await place.read("owner"))
        return re.findall(r"Chapter \d+", said) == chapters

    async with running(folder, place, clock):
        await place.write("owner", "at length, please")
        if place.answers_each:
            first = await answers(place, place.answers_each)
            assert len(first) == place.answers_each
            assert first[-1].text == GOES_ON.format(count=place.answers_each)
            await place.write("owner", "hello")
        await until(is_whole)
        said = await place.read("owner")
    if place.answers_each:
        said = [each for each in said if each.text.startswith("Chapter")]
        assert " ".join(each.text for each in said).split() == LONG.split()
        return f"{len(said)} messages, the rest when asked"
    words = " ".join(each.text for each in said).split()
    assert words == LONG.split()
    return "1 message" if len(said) == 1 else f"{len(said)} messages"


async def quick(place: Place, folder: Path, clock: trio.testing.MockClock) -> str:
    async with running(folder, place, clock):
        clock.rate = 0.0
        said: list[Said] = []
        await place.write("owner", "hello")
        for _ in range(3_000):
            said = await place.read("owner")
            if [each.text for each in said] == ["Anna here."]:
                break
            await trio.testing.wait_all_tasks_blocked(0.01)
        clock.rate = RATE
        assert [each.text for each in said] == ["Anna here."]
        await trio.sleep(5.0)
        assert await place.read("owner") == said
    return "at once, 1 message"


async def picture(place: Place, folder: Path, clock: trio.testing.MockClock) -> str:
    if not place.has_pictures:
        return "–"
    async with running(folder, place, clock):
        await place.write("owner", "look", cat=True)
        (said,) = await answers(place, 1)
        assert said.text == "A picture."
    return "reaches the model"


async def failure(place: Place, folder: Path, clock: trio.testing.MockClock) -> str:
    async with running(folder, place, clock):
        await place.write("owner", "break")
        (said,) = await answers(place, 1)
        assert said.text.startswith(REFUSED)
    return "told why"


async def crashed(place: Place, folder: Path, clock: trio.testing.MockClock) -> str:
    async with running(folder, place, clock) as app:
        await place.write("owner", "crash")
        await crash(app, folder)
    after_crash(folder, place)
    async with running(folder, place, clock):
        await answered(place, "Back again.")
        await place.write("owner", "hello")
        await answered(place, "Back again.", "Anna here.")
    return "answered once"


CASES: dict[str, Callable[..., Awaitable[str]]] = {
    "owner": owner,
    "colleague": colleague,
    "stranger": stranger,
    "two agents called": both,
    "long answer": long,
    "quick answer": quick,
    "picture": picture,
    "model fails": failure,
    "crash": crashed,
}


def table() -> dict[str, dict[str, str]]:
    """Read the table: cells by platform and case."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith("|")
    ]
    head = rows[0][1:]
    return {row[0]: dict(zip(head, row[1:], strict=True)) for row in rows[2:]}


def test_the_table_has_each_platform_and_each_case() -> None:
    found = table()
    assert set(found) == set(PLATFORMS)
    assert {tuple(row) for row in found.values()} == {tuple(CASES)}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", PLATFORMS)
async def test_people_see_what_the_table_says(
    name: str, case: str, tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    mock_clock.rate = RATE
    async with open_place(name) as place:
        seen = await CASES[case](place, tmp_path, mock_clock)
    assert seen == table()[name][case]
