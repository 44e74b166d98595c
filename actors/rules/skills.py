"""Which skills a message calls for, and what a model is told of them; pure.

A skill is a text of instructions with a name, one line on what it is for, and words
that call for it. A model always knows names and lines; the text comes when somebody's
words call for it, or when the model asks for it (the tool `use_skill`).
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

USE_SKILL = "use_skill"
"""Name of the tool by which a model asks for a skill's text."""

LONGEST_LOOK = 20_000
"""Characters of a message that are searched."""

SPACES = re.compile(r"\s+")

# Scripts that put no spaces between words, from the first to the last character of
# each: there, a word's end cannot be seen.
UNSPACED = (
    ("\u0e00", "\u0eff"),  # Thai, Lao
    ("\u1000", "\u109f"),  # Burmese
    ("\u1780", "\u17ff"),  # Khmer
    ("\u3040", "\u30ff"),  # Hiragana, Katakana
    ("\u3400", "\u9fff"),  # Han
    ("\uf900", "\ufaff"),
    ("\U00020000", "\U0003ffff"),
)


class Skill(msgspec.Struct, frozen=True):
    """One skill, as its file says."""

    name: str
    description: str
    triggers: tuple[str, ...]
    """Words that call for it; it may have none."""

    body: str
    files: tuple[str, ...] = ()
    """What lies beside it to be read, as paths inside its folder."""


def plain(text: str) -> str:
    """Make texts equal that people would call the same."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return SPACES.sub(" ", unicodedata.normalize("NFKC", folded)).strip()


def says(words: str, trigger: str) -> bool:
    """Tell whether a trigger stands in a text as a word, or words, of its own.

    Args:
        words: the text, made `plain`.
        trigger: made `plain` too.
    """
    at = words.find(trigger) if trigger else -1
    while at >= 0:
        end = at + len(trigger)
        is_cut_before = at > 0 and joins(words[at - 1], trigger[0])
        is_cut_after = end < len(words) and joins(trigger[-1], words[end])
        if not is_cut_before and not is_cut_after:
            return True
        at = words.find(trigger, at + 1)
    return False


def joins(left: str, right: str) -> bool:
    """Tell whether two characters beside each other belong to one word."""
    if not (is_letter(left) and is_letter(right)):
        return False
    return not (is_unspaced(left) or is_unspaced(right))


def is_letter(character: str) -> bool:
    """Tell whether a character is part of words: letters, digits, marks, `_`."""
    is_mark = unicodedata.category(character).startswith("M")
    return character.isalnum() or is_mark or character == "_"


def is_unspaced(character: str) -> bool:
    """Tell whether a character is of a script without spaces between words."""
    return any(first <= character <= last for first, last in UNSPACED)


def triggered(words: str, skills: Sequence[Skill], most: int) -> tuple[Skill, ...]:
    """Choose the skills that a message calls for, those called by more words first.

    Args:
        words: the message.
        skills: to choose from.
        most: how many at most.
    """
    text = plain(words[:LONGEST_LOOK])
    scores = [sum(says(text, plain(t)) for t in skill.triggers) for skill in skills]
    order = sorted(range(len(skills)), key=lambda n: -scores[n])
    return tuple(skills[n] for n in order if scores[n] > 0)[:most]


def catalogue(skills: Sequence[Skill]) -> str:
    """Tell a model which skills there are."""
    lines = "\n".join(f"- {skill.name}: {skill.description}" for skill in skills)
    return (
        "There are instructions for these tasks. Before you begin one, read them with"
        f" the tool {USE_SKILL}, unless they stand below:\n{lines}"
    )


def unfolded(skill: Skill) -> str:
    """Write a skill's instructions for a model, with what else can be read."""
    text = f"Instructions of the skill {skill.name}:\n\n{skill.body}"
    if skill.files:
        files = "\n".join(f"- {file}" for file in skill.files)
        text += f"\n\nFiles of this skill, to be read with {USE_SKILL}:\n{files}"
    return text
