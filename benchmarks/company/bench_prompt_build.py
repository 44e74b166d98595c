"""The prompt: how long it takes to put one together, and to make a history harmless.

Pure, so nothing but the processor counts. Each message pays for one prompt, each round
of its tool calls for another, all on the loop that everybody shares.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from actors.config.prompt import ContextConfig
from actors.messages.inbound import TranscriptLine
from actors.rules.prompt.brief import (
    Brief,
    ChatBrief,
    Memories,
    PersonaFiles,
    PromptMemory,
)
from actors.rules.prompt.build import build
from actors.rules.prompt.untrusted import ReadingRules, hear
from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.stopwatch import now
from connectors.chat.platforms import platform_of_kind

ROOM = 100_000
STYLE = platform_of_kind("telegram").reply_style
FACTS = tuple(PromptMemory(f"fact number {n}", f"key {n}") for n in range(8))
BARE = Brief(
    name="anna",
    context=ContextConfig(),
    prompt="You are Anna, the front desk.",
    place=ChatBrief("terminal", "terminal", "desk"),
    words="hello",
)
FULL = Brief(
    name="anna",
    context=ContextConfig(humaniser=True, language="German"),
    files=PersonaFiles(*("words of a persona " * 50 for _ in range(6))),
    prompt="You are Anna, the front desk.",
    colleagues={"ben": "sums", "carl": "letters"},
    tools=frozenset({"clock", "calculate", "read_file", "memory_search"}),
    standing=("There are skills. " * 20,),
    notes=("Instructions of a skill.\n" * 100,),
    place=ChatBrief("telegram", "telegram", "42", is_direct=False, reply_style=STYLE),
    words="what did we say last time?",
    memories=Memories(
        sticky=FACTS,
        relevant=FACTS,
        states=FACTS,
        profile=FACTS,
        lessons=FACTS,
        outcomes=FACTS,
        tasks=FACTS,
        summaries=("what was said\n" * 40,) * 3,
    ),
)
GATED = msgspec.structs.replace(
    FULL,
    words="nothing in particular",
    context=ContextConfig(gates=("scheduling", "recall", "outcomes", "profile")),
)
BEGINNING = datetime(2026, 11, 22, tzinfo=UTC)


def measure(plan: Plan) -> list[Figure]:
    """Build `size` prompts of each kind, and read as many lines."""
    return [
        Figure("agent with a prompt only", per_prompt(BARE, plan.size), "µs"),
        Figure("all layers", per_prompt(FULL, plan.size), "µs"),
        Figure("all layers, four gates shut", per_prompt(GATED, plan.size), "µs"),
        Figure("a new line of 400 characters", per_line(plan.size), "µs"),
    ]


def per_prompt(brief: Brief, size: int) -> float:
    """Give microseconds for one prompt; each is of another minute."""
    briefs = [
        msgspec.structs.replace(brief, now=BEGINNING + timedelta(minutes=n))
        for n in range(size)
    ]
    begin = now()
    for each in briefs:
        assert build(each, ROOM).text
    return (now() - begin) / size * 1e6


def per_line(size: int) -> float:
    """Give microseconds for a line that nobody has said before."""
    words = "please follow the rules of this house, [all] of them. " * 8
    lines = [
        TranscriptLine("user", f"{n} {words}"[:400], name="sam") for n in range(size)
    ]
    hearing = ReadingRules(is_group=True, mentions=("@anna",))
    begin = now()
    assert len(hear(lines, hearing)) == size
    return (now() - begin) / size * 1e6


BENCHMARK = Benchmark(
    name="prompt_build",
    about="one prompt put together of its layers; one line of a person made harmless",
    full=Plan(5_000, 1),
    quick=Plan(20, 1),
    measure=measure,
)
