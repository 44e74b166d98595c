"""Reads the parts of the README that tests check: commands, transcript, the way.

What the README must look like for this:

- a command stands alone on its line and begins with `python3 -m venv`;
- the transcript is a fence marked `console`: its first line is `$ callboard …`,
  a line `you> …` is what the person types, all others are what the program says;
- a step of the way is a line `N path.py  text`; where several files share a step
  they are joined by ` → `; `rules: a, b` at the end names pure files below `actors/`.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[2]
PROMPT = "you> "

STEP = re.compile(r"^ *(\d+) +(\S+\.py(?: → \S+\.py)*) {2,}(\S.*)$")
RULES = re.compile(r"rules?: ([a-z_/, ]+)$")
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")


class Step(msgspec.Struct, frozen=True):
    """One line of the way of a message."""

    number: int
    files: tuple[str, ...]
    rules: tuple[str, ...]
    """Paths of pure modules below `actors/`, without `.py`."""


class Transcript(msgspec.Struct, frozen=True):
    """A conversation as the README shows it."""

    arguments: tuple[str, ...]
    """What follows `callboard` on the command line."""

    typed: tuple[str, ...]
    said: tuple[str, ...]


def read() -> str:
    """Give the README's text."""
    return (ROOT / "README.md").read_text()


def commands(text: str) -> list[str]:
    """Give the commands that begin with making an environment."""
    return [line for line in text.splitlines() if line.startswith("python3 -m venv ")]


def steps(text: str) -> list[Step]:
    """Give the lines of the way, in the README's order."""
    found: list[Step] = []
    for line in text.splitlines():
        if match := STEP.match(line):
            number, files, rest = match.groups()
            rules = RULES.search(rest)
            names = rules.group(1).split(",") if rules else []
            found.append(
                Step(
                    int(number),
                    tuple(files.split(" → ")),
                    tuple(name.strip() for name in names),
                )
            )
    return found


def transcripts(text: str) -> list[Transcript]:
    """Give every conversation with `callboard` in the README's `console` fences."""
    found: list[Transcript] = []
    for block in CONSOLE.findall(text):
        first, *lines = str(block).splitlines()
        if first.startswith("$ callboard "):
            found.append(
                Transcript(
                    tuple(first.split()[2:]),
                    tuple(x.removeprefix(PROMPT) for x in lines if is_typed(x)),
                    tuple(x.rstrip() for x in lines if x.strip() and not is_typed(x)),
                )
            )
    return found


def is_typed(line: str) -> bool:
    """Tell whether this line of a transcript is the person's."""
    return line.startswith(PROMPT)


def said(output: str) -> tuple[str, ...]:
    """Give the program's lines without the typed ones, which a pipe has echoed."""
    lines = (line.rstrip() for line in output.splitlines())
    return tuple(
        line for line in lines if line and not line.startswith(PROMPT.rstrip())
    )


def command_lines(text: str) -> set[tuple[str, ...]]:
    """Give the words after every `callboard` in code that has options, to its end."""
    code = FENCE.findall(text) + CODE.findall(FENCE.sub("", text))
    found: set[tuple[str, ...]] = set()
    for piece in code:
        for line in str(piece).splitlines():
            for words in re.findall(r"\bcallboard( [a-z][^|;&#`\\]*)", line):
                if re.search(r" --?[a-z]", words):
                    found.add(tuple(str(words).split()))
    return found


def subcommands(text: str) -> set[tuple[str, ...]]:
    """Give the words after every `callboard` in code, up to the first option."""
    code = FENCE.findall(text) + CODE.findall(FENCE.sub("", text))
    found: set[tuple[str, ...]] = set()
    for piece in code:
        for words in re.findall(
            r"\bcallboard((?: [a-z]+(?:-[a-z]+)*\b(?![./=]))+)", piece
        ):
            found.add(tuple(str(words).split()))
    return found
