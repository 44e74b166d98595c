"""However long a conversation is, the next answer costs the same, and facts stay."""

from __future__ import annotations

from hashlib import sha256

import trio.testing

from actors.config.agents import AgentConfig
from actors.config.memory import MemoryConfig
from actors.config.prompt import ContextConfig
from actors.config.sessions import CompactionConfig
from actors.journal.commits import as_journal
from actors.journal.history import Compacted, Exchanged, History
from actors.messages.inbound import ModelRequest, TranscriptLine
from runtime.store.rows import StoredEvent
from tests.fakes.company.company import at_rest, heard, open_company
from tests.fakes.company.gossip import whole
from tests.fakes.company.minded import Minded
from tests.fakes.models.summing import Summer, chapters, task_of
from tests.fakes.store.in_memory import MemoryStore

Clock = trio.testing.MockClock

STREAM = "anna/fake/room//zoe"
LONG = "so many words " * 10
LETTERS = str.maketrans("0123456789", "ghijklmnop")  # no telephone numbers
AT_ONCE = 500
"""Exchanges that are written with one commit."""


class Counting(MemoryStore):
    """Counts the rows of the past that somebody reads."""

    events = 0

    async def read(
        self, stream: str, after: int = 0, limit: int = 1000
    ) -> tuple[StoredEvent, ...]:
        found = await super().read(stream, after, limit)
        self.events += len(found)
        return found


def make_cast(model: Summer, memory: MemoryConfig | None = None) -> Minded:
    # Summaries and facts are asked for more often than anybody would set it.
    context = ContextConfig(window_tokens=200_000)
    return Minded(
        agents={"anna": AgentConfig(max_history=40, context=context)},
        model=model,
        compaction=CompactionConfig(max_chars=3_000, flush_after=10),
        memory=memory or MemoryConfig(),
    )


async def write_past(cast: Minded, exchanges: int) -> Counting:
    """Have said a lot, as if by an earlier process."""
    store = Counting()
    history = History(STREAM, 40)
    for first in range(0, exchanges, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, exchanges))
        events = tuple(
            Exchanged(
                inbound_id=f"old{number}",
                lines=(
                    TranscriptLine("user", f"{LONG}?", name="zoe"),
                    TranscriptLine("assistant", "Yes."),
                ),
            )
            for number in numbers
        )
        commit = as_journal(events, history, 1_000.0 + first, cast.services.keep)
        await store.commit(commit)
        for sequence, event in enumerate(events, first + 1):
            history.take(sequence, event, 1_000.0 + first)
    cast.store = store
    return store


async def go_on(clock: Clock, exchanges: int) -> tuple[int, list[tuple[str, int, int]]]:
    """Wake a conversation and go on; give what was read, and what was asked."""
    cast = make_cast(Summer(facts="NOTHING"))
    store = await write_past(cast, exchanges)
    async with open_company(clock, cast):
        for number in range(12):
            cast.platform.write(f"{number} {LONG}")
            await at_rest(cast)
    assert len(cast.platform.said()) == 12
    asked = [
        (task_of(x), len(x.lines), sum(len(line.text) for line in x.lines))
        for x in cast.model.requests
    ]
    return store.events, sorted(asked)  # facts are looked for beside the answers


async def test_after_a_hundred_thousand_messages_an_answer_costs_what_it_always_did(
    autojump_clock: Clock,
) -> None:
    few = AT_ONCE + 17
    # A history drops old lines each 21 exchanges, and is written down each 50.
    many = few + 21 * AT_ONCE * 5
    assert many * 2 > 100_000
    read, asked = await go_on(autojump_clock, few)
    assert await go_on(autojump_clock, many) == (read, asked)
    assert read == 17  # what came after the newest snapshot
    assert {task for task, _, _ in asked} == {"talk", "facts", "summary"}
    assert max(lines for _, lines, _ in asked) <= 41


def fact(number: int) -> str:
    """Give a fact that is like no other."""
    words = sha256(str(number).encode()).hexdigest().translate(LETTERS)
    return f"fact {number} about {' '.join(words[i : i + 8] for i in range(0, 32, 8))}"


def noting_all(request: ModelRequest) -> str:
    number = int(heard(request).split()[0])
    return f"noted [MEMORY:sticky] {fact(number)} [/MEMORY]"


async def test_however_often_it_is_summed_up_every_sticky_fact_is_kept(
    autojump_clock: Clock,
) -> None:
    count = 150
    found = f"[MEMORY:sticky] {fact(1_000)} [/MEMORY]"
    memory = MemoryConfig(sticky=500, max_facts=500)
    cast = make_cast(Summer(facts=found, talk=noting_all), memory)
    async with open_company(autojump_clock, cast):
        for number in range(count):
            cast.platform.write(f"{number} {LONG}")
            await at_rest(cast)
        cast.platform.write(f"{count} and now")
        await at_rest(cast)
    assert sum(isinstance(x, Compacted) for x in await chapters(cast)) > 5
    known = await cast.known("person:fake/zoe")
    expected = {fact(number) for number in (*range(count + 1), 1_000)}
    assert expected <= set(known)
    assert sum(each in expected for each in known) == len(expected)
    shown = whole([x for x in cast.model.requests if task_of(x) == "talk"][-1])
    assert {each for each in expected if each in shown} == expected - {fact(count)}
