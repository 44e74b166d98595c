"""Whether one person whose message waits holds up the others in the group.

R4   while one person's message fails, hangs or waits for leave, or one person floods
     the group, the others are answered within twice the time that it takes without.
     Beside a flood an answer may wait for two more, the one under way and one of the
     last few, and the times of each person are added up: where a line forms, others
     change places. Messages that were refused, the line being full, are left out
R5   while the model hangs with all that one API key asked, in the names of many people,
     others who ask the same model are answered within twice the time that it takes

The same people write the same words at the same times in each run of a seed; only what
becomes of one person's first message differs.
"""

from __future__ import annotations

import random  # noqa: TID251  seeded
from collections.abc import Sequence
from functools import cache, partial
from math import inf
from typing import Literal

import msgspec
import trio
from trio.testing import MockClock

from actors.config.agents import AgentConfig
from actors.config.limits import LimitsConfig
from actors.config.sessions import BufferingConfig, WatchdogConfig
from actors.messages.deliveries import Delivery
from actors.messages.inbound import ModelRequest
from actors.messages.state import RetryPolicy
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Platform,
    Says,
    call,
    heard,
    open_company,
)
from tests.fakes.company.shell import OLGA, Shell
from tests.simulation.trace import Violation

Trouble = Literal["", "calm", "fails", "hangs", "asks", "floods"]
"""`calm` is without trouble, too, and quiet turns are not passed, as in a flood."""

TROUBLES: tuple[Trouble, ...] = ("fails", "hangs", "asks", "floods")

FLOOD = 40
"""Messages that one person writes at once who floods."""

# Chosen: as short as the quickest answer, so that a model that hangs is passed in time.
SHORTEST, LONGEST = 1.0, 3.0

# Chosen: a twentieth of a second for the time between two actors.
ROUNDING = 0.05

EVERY = 10
"""One seed in so many is played so, too."""


class Words(msgspec.Struct, frozen=True):
    """One person writes one message."""

    at: float
    sender: str
    text: str


class TimingPlatform(Platform):
    """A group that notes when each message was answered."""

    def __init__(self) -> None:
        super().__init__(is_direct=False)
        self.answered: dict[str, float] = {}
        self.turned_away: set[str] = set()

    async def deliver(self, delivery: Delivery) -> str:
        if delivery.trouble == "busy":
            self.turned_away.add(delivery.reply_id)
        if delivery.kind != "notice":
            now = trio.current_time()
            self.answered.setdefault(delivery.reply_id, now)
        return await super().deliver(delivery)


def _plan(dice: random.Random) -> list[Words]:
    people = [f"p{number}" for number in range(dice.randint(2, 6))]
    first = Words(dice.uniform(0.0, 10.0), "troubled", "first")
    after = Words(first.at + dice.uniform(0.0, 5.0), "troubled", "second")
    rest = [
        Words(dice.uniform(0.0, 30.0), dice.choice(people), f"w{number}")
        for number in range(dice.randint(3, 15))
    ]
    return sorted((first, after, *rest), key=lambda words: words.at)


def _talk(trouble: Trouble, seed: int, request: ModelRequest) -> Says:
    """Take as long over the same words in each run; trouble is with one message."""
    line, words = request.lines[-1], heard(request)
    after = random.Random(f"{seed} {words}").uniform(SHORTEST, LONGEST)  # noqa: S311
    if words.startswith("flood"):
        after = SHORTEST
    if line.role == "tool" or words != "first":
        return Says(f"to {words}", after=after)
    if trouble == "fails":
        return Says(after=after, error=RuntimeError("to order"))
    if trouble == "asks":
        return Says("Wait.", calls=(call("shell", command="ls"),), after=after)
    return Says(f"to {words}", after=9_999.0 if trouble == "hangs" else after)


async def _times(seed: int, trouble: Trouble) -> dict[str, float]:
    """Give how long the others waited for their answers, by message.

    Without an answer it is infinite; what was refused is left out.
    """
    platform = TimingPlatform()
    dice = random.Random(f"passing {seed}")  # noqa: S311
    plan = _plan(dice)
    cast = Cast(
        agents={"anna": AgentConfig(tools=("shell",))},
        model=FakeModel(partial(_talk, trouble, seed)),
        tools=(Shell(),),
        approvers=(OLGA,),
        platform=platform,
        # Nobody waits for a permit, and each who is refused is told.
        limits=LimitsConfig(max_in_flight=20, told_again_after=0.0),
        # Each message is answered by itself, so that its time can be told.
        buffering=BufferingConfig(policy="serial"),
        watchdog=WatchdogConfig(
            # What is quiet is passed; a flood is to be passed by turns, not by that.
            quiet_after=4 * LONGEST if trouble in {"floods", "calm"} else SHORTEST
        ),
        retries=RetryPolicy(),
    )
    clock = trio.lowlevel.current_clock()
    assert isinstance(clock, MockClock)
    wrote: dict[str, str] = {}
    async with open_company(clock, cast):
        for words in plan:
            await trio.sleep_until(words.at)
            inbound = platform.write(f"@anna {words.text}", sender=words.sender)
            wrote[inbound.id] = words.text
            if words.text == "first" and trouble == "floods":
                for number in range(FLOOD):
                    platform.write(f"@anna flood{number}", sender=words.sender)
        await trio.sleep(2 * LONGEST * len(plan))
    by_text = {each.text: each for each in plan}
    return {
        text: platform.answered.get(name, inf) - by_text[text].at
        for name, text in wrote.items()
        if by_text[text].sender != "troubled" and name not in platform.turned_away
    }


def held_up(seed: int, troubles: Sequence[Trouble] = TROUBLES) -> list[Violation]:
    """Play a group without trouble and with each; tell who was held up."""
    found: list[Violation] = []
    for trouble in troubles:
        took = _play(seed, trouble)
        usual = _play(seed, "calm" if trouble == "floods" else "")
        pairs = {text: (took.get(text, inf), 2 * at) for text, at in usual.items()}
        if trouble == "floods":
            pairs = _by_person(
                seed, {each: pairs[each] for each in pairs if each in took}
            )
        for what, (now, most) in pairs.items():
            if now > most + ROUNDING:
                why = f"{what} took {now} s, not {most} at most: a person {trouble}"
                found.append(Violation("R4", why))
    return found


def _by_person(
    seed: int, pairs: dict[str, tuple[float, float]]
) -> dict[str, tuple[float, float]]:
    """Add up how long each person waited beside a flood, and may wait at most."""
    sums: dict[str, tuple[float, float]] = {}
    for words in _plan(random.Random(f"passing {seed}")):  # noqa: S311
        if words.text in pairs:
            now, most = pairs[words.text]
            before = sums.get(words.sender, (0.0, 0.0))
            # One of the two may be to what the same person wrote beside the flood.
            most += SHORTEST + LONGEST
            sums[words.sender] = before[0] + now, before[1] + most
    return sums


@cache
def _play(seed: int, trouble: Trouble) -> dict[str, float]:
    clock = MockClock(autojump_threshold=0)
    return trio.run(_times, seed, trouble, clock=clock)


async def _times_beside(seed: int, flood: int) -> dict[str, float]:
    """Give how long people waited whose words a key does not bring, by their words.

    Args:
        seed: of the people, their words and moments.
        flood: messages that one key brings first, each from somebody else.
    """
    dice = random.Random(f"crowding {seed}")  # noqa: S311
    platform = TimingPlatform()
    platform.is_direct = True
    cast = Cast(
        model=FakeModel(partial(_talk, "hangs", seed)),
        platform=platform,
        limits=LimitsConfig(max_in_flight=dice.randint(4, 16)),
        buffering=BufferingConfig(policy="serial"),
    )
    clock = trio.lowlevel.current_clock()
    assert isinstance(clock, MockClock)
    wrote: dict[str, tuple[str, float]] = {}
    async with open_company(clock, cast):
        platform.caller = "key a"
        for number in range(flood):
            platform.write("first", chat=f"c{number}", sender=f"author{number}")
        for number in range(dice.randint(1, 5)):
            # One after the other: they are not to wait for each other either.
            await trio.sleep(LONGEST + dice.random())
            text, platform.caller = f"w{number}", dice.choice(("", "key b"))
            written = platform.write(text, chat=text, sender="ann")
            wrote[written.id] = text, trio.current_time()
        await trio.sleep(3 * LONGEST)
    return {
        wrote[name][0]: at - wrote[name][1]
        for name, at in platform.answered.items()
        if name in wrote
    }


def crowded_out(seed: int) -> list[Violation]:
    """Play people without and beside a key whose turns all hang; tell who waited."""
    played: list[dict[str, float]] = []
    for flood in (0, 40):
        clock = MockClock(autojump_threshold=0)
        played.append(trio.run(_times_beside, seed, flood, clock=clock))
    usual, beside = played
    return [
        Violation("R5", f"{text} took {beside.get(text)} s, not {seconds}")
        for text, seconds in usual.items()
        if beside.get(text, inf) > 2 * seconds + ROUNDING
    ]
