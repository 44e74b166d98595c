"""What somebody tells reaches nobody else, whatever the order in which actors run.

Fifty people say twenty things each, in private, in groups and from linked accounts, to
a model that remembers, searches, hands on, schedules and sums up all it hears.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import pytest
import trio
import trio.testing

from actors.config import AgentConfig, LimitsConfig
from actors.people_config import CommandsConfig
from actors.rules.keys import parse_key
from actors.session_config import CompactionConfig
from runtime.logs import LineFormatter, Redactor
from runtime.testing import seeded_order
from tests.fakes.company import FakeModel, Platform, at_rest, open_company
from tests.fakes.gossip import TOKEN, gossip, secrets, token, whole
from tests.fakes.minded import Minded
from tests.fakes.summing import task_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from actors.deliveries import Delivery, Draft
    from actors.messages import ModelRequest

Clock = trio.testing.MockClock

OWNER = "fake/owner"
COMMANDS = ("/memory", "/tasks", "/status", "/whoami", "/new")
SYSTEMS = pytest.mark.parametrize(
    ("order", "people", "rounds"),
    [(0, 50, 20), *((seed, 12, 11) for seed in range(1, 9))],
)


def make_cast() -> Minded:
    tools = ("memory_search", "save_memory")
    return Minded(
        agents={
            "anna": AgentConfig(delegates=("ben",), tools=tools, autonomy="full"),
            "ben": AgentConfig(delegated_tools="all", tools=tools, autonomy="full"),
        },
        model=FakeModel(gossip),
        others=(Platform("other"), Platform("group", is_direct=False)),
        limits=LimitsConfig(max_waiting=500),
        compaction=CompactionConfig(max_chars=6_000, flush_after=7, keep_lines=2),
        commands=CommandsConfig(),
        approvers=(OWNER,),
        owners=(OWNER,),
    )


def is_linked(person: int) -> bool:
    return person % 5 == 2


def is_grouped(person: int, number: int) -> bool:
    return person % 5 == 1 or (person % 5 == 0 and number % 2 == 1)


def say(cast: Minded, person: int, number: int) -> None:
    """Have somebody say their next secret, and now and then a command."""
    platform, chat, place = cast.platform, f"dm{person:02}", "d"
    sender, start = f"s{person:02}", ""
    if is_grouped(person, number):
        platform, place = cast.others[1], f"g{person // 10}"
        chat, start = place, "@anna "
    elif is_linked(person) and number % 2:
        platform, sender = cast.others[0], f"t{person:02}"
    text = f"{start}my secret is {token(place, person, number)}, keep my secret"
    platform.write(text, chat=chat, sender=sender)
    if number % 5 == 4:
        word = COMMANDS[(person + number // 5) % len(COMMANDS)]
        platform.write(f"{start}{word}", chat=chat, sender=sender)


async def live(cast: Minded, people: int, rounds: range, clock: Clock) -> None:
    """Have everybody say some things, all at once."""
    cast.equip()
    async with open_company(clock, cast) as system:
        cast.system = system
        for number in rounds:
            for person in range(people):
                say(cast, person, number)
            await trio.sleep(0.01)
            if number == 0:
                await at_rest(cast)
                for person in filter(is_linked, range(people)):
                    both = f"fake/s{person:02} other/t{person:02}"
                    cast.others[0].write("hi", chat="hi", sender=f"t{person:02}")
                    await at_rest(cast)
                    cast.platform.write(f"/link {both}", chat="own", sender="owner")
                await at_rest(cast)
        await at_rest(cast)
        await trio.sleep(1_300)  # what was scheduled is due
        await at_rest(cast)


def play(order: int, people: int, rounds: int) -> Minded:
    cast = make_cast()
    half = rounds // 2
    for part in (range(half), range(half, rounds)):
        with seeded_order(order):
            clock = Clock(autojump_threshold=0)
            trio.run(live, cast, people, part, clock, clock=clock)
        cast.restart()
    return cast


class Written(logging.Handler):
    """Keeps every line that is written."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []
        self.wordless: list[str] = []
        """What is written where `audit.texts` is off."""

        self._without = LineFormatter("text", Redactor(), has_words=False)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.getMessage()} {record.__dict__}")
        self.wordless.append(self._without.format(record))


@pytest.fixture
def written() -> Iterator[Written]:
    """Give all lines of the log, also those that nobody would write down."""
    handler, root = Written(), logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.setLevel(before)
    root.removeHandler(handler)


def strangers(text: str, place: str, reader: int = -1) -> list[str]:
    """Give what of a text may not be told in a place: in private, to its reader."""
    return [str(x) for x in secrets(text) if not x.may_be_told(place, reader)]


def place_of(connector: str, chat: str, sender: str = "") -> tuple[str, int]:
    """Say whose secrets may be told in a chat."""
    if connector == "group":
        return chat, -1
    number = (sender or chat)[-2:]
    return "d", int(number) if number.isdigit() else -1


@SYSTEMS
def test_nobody_hears_what_others_told(
    order: int, people: int, rounds: int, written: Written
) -> None:
    cast = play(order, people, rounds)
    for request in cast.model.requests:
        check_request(request)
    for platform in (cast.platform, *cast.others):
        all_said: list[Delivery | Draft] = [*platform.deliveries, *platform.drafts]
        for said in all_said:
            place = place_of(said.address.connector, said.address.chat)
            assert not strangers(msgspec.json.encode(said).decode(), *place)
    check_rows(cast)
    assert not TOKEN.search(cast.metrics.render().decode())
    for line in filter(TOKEN.search, written.lines):
        assert line.startswith("message received")  # as somebody wrote it
        assert len(secrets(line)) == 1
    assert len(written.wordless) == len(written.lines)
    assert not any(map(TOKEN.search, written.wordless))
    check_that_it_could_fail(cast)


def check_request(request: ModelRequest) -> None:
    key = parse_key(request.conversation.removesuffix("/condense"))
    place = place_of(key.connector, key.chat, key.sender)
    assert not strangers(whole(request), *place)


def check_rows(cast: Minded) -> None:
    """Look at each row of the database."""
    rows = cast.store._rows
    for fact in rows.facts._facts.values():
        kind, _, name = fact.scope.partition(":")
        connector, chat, *_ = name.split("/")
        place = place_of(connector, chat)
        assert kind == ("chat" if connector == "group" else "person")
        assert not strangers(repr(fact), *place)
    for stream, events in rows.journal.items():
        key = parse_key("/".join(stream.split("/")[:5]))  # a turn's steps have six
        place = place_of(key.connector, key.chat, key.sender)
        assert not strangers(repr(events), *place)
    for delivery in rows.outbox.values():
        place = place_of(delivery.connector, delivery.chat)
        assert not strangers(repr(delivery), *place)
    for row in (*rows.inbox.values(), *rows.records.values(), *rows.entries.values()):
        told = secrets(repr(row))
        speakers = {each.speaker for each in told}
        assert len(speakers) <= 1 or len({each.place for each in told}) == 1


def check_that_it_could_fail(cast: Minded) -> None:
    """See that secrets were remembered, found, told again, handed on and summed up."""
    tasks = Counter(map(task_of, cast.model.requests))
    assert min(tasks["facts"], tasks["summary"]) > 0
    reminded = [x for x in cast.model.requests if secrets(x.system)]
    assert len(reminded) > len(cast.model.requests) / 3
    assert {x.agent for x in reminded} == {"anna", "ben"}
    found = [line for x in cast.model.requests for line in x.lines if "]" in line.text]
    assert [line for line in found if line.role == "tool" and secrets(line.text)]
    kinds = {fact.kind for fact in cast.store._rows.facts._facts.values()}
    assert kinds == {"fact", "state", "lesson", "outcome", "summary", "log"}
    said = [x.text for x in cast.platform.deliveries]
    assert any(text.startswith("⏰") and secrets(text) for text in said)
    assert any("This is remembered" in text and secrets(text) for text in said)
