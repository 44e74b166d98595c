"""Chooses a model for a message: by its words, or by asking a cheap model.

Pure. In doubt a message is answered directly: a plan that nobody asked
for costs more than one that is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from actors.rules.markers.sanitizer import clean
from actors.rules.prompt.tools import bound
from actors.rules.prompt.untrusted import as_item
from actors.rules.text.similarity import fold, holds

# Chosen: about 400 tokens of context at most; what somebody wants often stands behind a
# greeting, so less of a message is not enough; or behind something long that they
# pasted, so the end is shown, too.
MESSAGES = 3
MESSAGE_CHARACTERS = 500
NAMES_CHARACTERS = 100

STEP_CHARACTERS = 200

DIRECT = "DIRECT"

QUESTION = """\
Does the last message need several steps that build on each other? If not, or if in\
 doubt, answer with the one word DIRECT. If so, answer with nothing but a numbered\
 list of at most {most} short steps."""

NUMBERED = re.compile(r"(\d{1,3})[.)]\s+(\S.*)")


class ModelHint(msgspec.Struct, frozen=True):
    """Words in a message that choose a model for it."""

    words: tuple[str, ...]
    model: str


def by_hint(text: str, hints: Iterable[ModelHint]) -> str:
    """Give the model of the first hint that fits; empty if none does.

    A word fits as a whole only, in any case: `code` is not in `encoded`.
    """
    folded = fold(text)
    for hint in hints:
        if any(holds(folded, fold(word)) for word in hint.words):
            return hint.model
    return ""


def question(
    said: Iterable[str], names: Iterable[str], most: int, project: str = ""
) -> str:
    """Put the question to a model that knows nothing else.

    Args:
        said: the conversation, oldest first, the message last.
        names: what the agent can do: its tools and skills.
        most: steps at most.
        project: name of the project that the person works on; empty: none.
    """
    last = [bound(each.strip(), MESSAGE_CHARACTERS) for each in [*said][-MESSAGES:]]
    known = ", ".join(names)[:NAMES_CHARACTERS]
    lines = [f"- {' '.join(each.split())}" for each in last]
    able = [f"It can use: {known}"] if known else []
    work = [f"They work on: {as_item(project)[:NAMES_CHARACTERS]}"] if project else []
    read = ["An assistant reads:", *lines, *able, *work]
    return "\n".join([*read, QUESTION.format(most=most)])


def read_plan(answer: str, most: int) -> tuple[str, ...]:
    """Read a classification; nothing is a plan but a clean numbered list.

    Args:
        most: steps at most.

    Returns:
        The steps; none: answer directly.
    """
    lines = [line.strip() for line in answer.splitlines() if line.strip()]
    if lines and lines[0].endswith(":") and not NUMBERED.fullmatch(lines[0]):
        del lines[0]  # "Here are the steps:"
    steps: list[str] = []
    for line in lines:
        found = NUMBERED.fullmatch(line)
        if found is None or int(found[1]) != len(steps) + 1:
            return ()
        steps.append(found[2][:STEP_CHARACTERS])
    is_plan = 2 <= len(steps) <= most and DIRECT not in steps
    return tuple(steps) if is_plan else ()


def instruct(steps: tuple[str, ...], number: int) -> str:
    """Tell the model which step to take now, from 1; the first one with the plan."""
    plan = "\n".join(f"{n}. {step}" for n, step in enumerate(steps, 1))
    begins = f"This is answered in {len(steps)} steps:\n{plan}\n" if number == 1 else ""
    return (
        f"({begins}Now take step {number} only: {steps[number - 1]}\nUse the tools that"
        " it needs, and write what belongs to it. What you wrote before is read"
        " together with it.)"
    )


def progress(steps: tuple[str, ...], number: int) -> str:
    """Tell people that a step is done, from 1."""
    return f"\N{CHECK MARK} Step {number} of {len(steps)}: {clean(steps[number - 1])}"
