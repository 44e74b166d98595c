"""Fifty people who tell secrets in all places there are, and who hears of them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any

import msgspec
import trio

from actors.config.access import CommandsConfig
from actors.config.agents import AgentConfig
from actors.config.limits import LimitsConfig
from actors.config.sessions import CompactionConfig
from actors.messages.deliveries import Delivery, Draft
from actors.messages.inbound import ModelRequest
from actors.messages.keys import parse_key
from runtime.system import ActorSystem
from runtime.telemetry.logs import LineFormatter, Redactor
from tests.fakes.company.company import EVERY_FAMILY, FakeModel, Platform, at_rest
from tests.fakes.company.gossip import TOKEN, gossip, secrets, token, whole
from tests.fakes.company.minded import Minded
from tests.fakes.models.summing import task_of

OWNER = "fake/owner"
COMMANDS = ("/memory", "/tasks", "/status", "/whoami", "/new")


def make_cast(**fields: Any) -> Minded:
    tools = ("memory_search", "save_memory")
    both = AgentConfig(tools=tools, autonomy="full", markers=EVERY_FAMILY)
    return Minded(
        agents={
            "anna": msgspec.structs.replace(both, delegates=("ben",)),
            "ben": msgspec.structs.replace(both, delegated_tools="all"),
        },
        model=FakeModel(gossip),
        others=(Platform("other"), Platform("group", is_direct=False)),
        limits=LimitsConfig(max_waiting=500),
        compaction=CompactionConfig(max_chars=6_000, flush_after=7, keep_lines=2),
        commands=CommandsConfig(),
        approvers=(OWNER,),
        owners=(OWNER,),
        **fields,
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


async def live(cast: Minded, people: int, rounds: range, system: ActorSystem) -> None:
    """Have everybody say some things, all at once."""
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


@contextmanager
def catching() -> Generator[Written]:
    """Give all lines of the log, also those that nobody would write down."""
    handler, root = Written(), logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield handler
    finally:
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


def check_talk(cast: Minded) -> None:
    """Look at all that models were told, and all that people were."""
    for request in cast.model.requests:
        check_request(request)
    for platform in (cast.platform, *cast.others):
        all_said: list[Delivery | Draft] = [*platform.deliveries, *platform.drafts]
        for said in all_said:
            place = place_of(said.address.connector, said.address.chat)
            assert not strangers(msgspec.json.encode(said).decode(), *place)


def check_figures(cast: Minded, written: Written) -> None:
    """Look at all metrics, and at each line of the log."""
    assert not TOKEN.search(cast.metrics.render().decode())
    for line in filter(TOKEN.search, written.lines):
        assert line.startswith("message received")  # as somebody wrote it
        assert len(secrets(line)) == 1
    assert len(written.wordless) == len(written.lines)
    assert not any(map(TOKEN.search, written.wordless))


def check_request(request: ModelRequest) -> None:
    key = parse_key(request.conversation.removesuffix("/condense"))
    place = place_of(key.connector, key.chat, key.sender)
    assert not strangers(whole(request), *place)


def check_that_it_could_fail(cast: Minded, kinds: Iterable[str]) -> None:
    """See that secrets were remembered, found, told again, handed on and summed up.

    Args:
        cast: those who talked.
        kinds: of what is remembered.
    """
    tasks = Counter(map(task_of, cast.model.requests))
    assert min(tasks["facts"], tasks["summary"]) > 0
    reminded = [x for x in cast.model.requests if secrets(x.system)]
    assert len(reminded) > len(cast.model.requests) / 3
    assert {x.agent for x in reminded} == {"anna", "ben"}
    found = [line for x in cast.model.requests for line in x.lines if "]" in line.text]
    assert [line for line in found if line.role == "tool" and secrets(line.text)]
    assert set(kinds) == {"fact", "state", "lesson", "outcome", "summary", "log"}
    said = [x.text for x in cast.platform.deliveries]
    assert any(text.startswith("⏰") and secrets(text) for text in said)
    assert any("This is remembered" in text and secrets(text) for text in said)
