"""Sanitizer: what one token of a model's answer costs on its way to people.

Four letters are a token. A stream is cleaned token by token, as drafts are; a whole
answer is parsed at once, as it is before it is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.rules.markers.parser import parse
from actors.rules.markers.sanitizer import Sanitizer
from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.stopwatch import now_ns

if TYPE_CHECKING:
    import random

LETTERS = 4
"""Of one token, on average."""

WORDS = [
    "the",
    "quick",
    "brown",
    "fox",
    "jumps",
    "over",
    "a",
    "lazy",
    "dog",
    "and",
    "then",
    "it",
    "has",
    "nothing",
    "to",
    "report",
    "until",
    "tomorrow",
    "because",
    "rain",
    "falls",
    "where",
    "hills",
    "are",
]
MARKED = (
    "[MEMORY:user_preference] likes tea [/MEMORY]",
    "<think>hm, not sure</think>",
    "\nSCHEDULE: call Ben | 2026-02-17T15:00 | once\n",
    "[DELEGATE:ben] sum up the talk [/DELEGATE]",
    "\n```py\nprint('hello')\n```\n",
)


def measure(plan: Plan) -> list[Figure]:
    """Clean `size` tokens of plain words, and as many with a mark in each paragraph."""
    dice = plan.dice()
    figures: list[Figure] = []
    for name, marks in (("plain", ()), ("marked", MARKED)):
        text = written(plan.size * LETTERS, marks, dice)
        tokens = [text[at : at + LETTERS] for at in range(0, len(text), LETTERS)]
        figures += [
            Figure(f"stream, {name}", streamed(tokens) / len(tokens), "ns/token"),
            Figure(f"whole, {name}", parsed(text) / len(tokens), "ns/token"),
        ]
    return figures


def written(length: int, marks: tuple[str, ...], dice: random.Random) -> str:
    """Write paragraphs of forty words, each with one of the marks, if there are any."""
    paragraphs: list[str] = []
    while sum(map(len, paragraphs)) < length:
        words = dice.choices(WORDS, k=40)
        if marks:
            words[dice.randrange(40)] = dice.choice(marks)
        paragraphs.append(" ".join(words) + ".\n\n")
    return "".join(paragraphs)[:length]


def streamed(tokens: list[str]) -> int:
    """Clean a stream; give the nanoseconds."""
    sanitizer = Sanitizer()
    begin = now_ns()
    shown = sum(len(sanitizer.feed(token)) for token in tokens)
    shown += len(sanitizer.finish())
    spent = now_ns() - begin
    assert shown > 0
    return spent


def parsed(text: str) -> int:
    """Parse a whole text; give the nanoseconds."""
    begin = now_ns()
    assert parse(text, "assistant").visible
    return now_ns() - begin


BENCHMARK = Benchmark(
    name="sanitizer",
    about="one token cleaned of marks: streamed and whole, plain words and marked ones",
    full=Plan(100_000, 1),
    quick=Plan(200, 1),
    measure=measure,
)
