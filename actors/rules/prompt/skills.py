"""Skills: which ones a message triggers, and their texts in the prompt. Pure.

A skill is a text of instructions with a name, a one-line description and trigger words.
The prompt always lists names and descriptions. It contains a skill's text when a
message triggers it or the model asks for it (tool `use_skill`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec

USE_SKILL = "use_skill"
"""Name of the tool with which a model asks for a skill's text."""

SKILL_FILE = "SKILL.md"
"""Holds a skill's instructions, in a folder of its own."""

LONGEST_LOOK = 20_000
"""Characters of a message that are searched."""

SPACES = re.compile(r"\s+")

# Scripts without spaces between words, from the first to the last character of each.
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
    """One skill, from its file."""

    name: str
    description: str
    triggers: tuple[str, ...]
    """Its trigger words; may be empty."""

    body: str
    files: tuple[str, ...] = ()
    """Further readable files, as paths in its folder."""


def plain(text: str) -> str:
    """Normalise a text for comparison."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return SPACES.sub(" ", unicodedata.normalize("NFKC", folded)).strip()


def says(words: str, trigger: str) -> bool:
    """Return whether a text contains a trigger as whole words.

    Args:
        words: the text, normalised by `plain`.
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
    """Return whether two adjacent characters belong to one word."""
    if not (is_letter(left) and is_letter(right)):
        return False
    return not (is_unspaced(left) or is_unspaced(right))


def is_letter(character: str) -> bool:
    """Return whether a character is part of words: letters, digits, marks, `_`."""
    is_mark = unicodedata.category(character).startswith("M")
    return character.isalnum() or is_mark or character == "_"


def is_unspaced(character: str) -> bool:
    """Return whether a character belongs to a script without spaces between words."""
    return any(first <= character <= last for first, last in UNSPACED)


def triggered(words: str, skills: Sequence[Skill], most: int) -> tuple[Skill, ...]:
    """Return the skills that a message triggers, those by more words first."""
    text = plain(words[:LONGEST_LOOK])
    scores = [sum(says(text, each) for each in _looked_for(s)) for s in skills]
    order = sorted(range(len(skills)), key=lambda n: -scores[n])
    return tuple(skills[n] for n in order if scores[n] > 0)[:most]


@lru_cache(maxsize=1024)
def _looked_for(skill: Skill) -> tuple[str, ...]:
    """Return a skill's trigger words, normalised."""
    return tuple(plain(word) for word in skill.triggers)


def catalogue(skills: Sequence[Skill], places: Mapping[str, str]) -> str:
    """Return the list of skills for the prompt.

    Args:
        places: by name, the folder in which a program that answers can read it; empty
            for a model that only has tools.
    """
    lines = "\n".join(
        f"- {skill.name}: {skill.description}"
        + (f" ({places[skill.name]})" if skill.name in places else "")
        for skill in skills
    )
    where = f"with the tool {USE_SKILL}"
    if places:
        where = f"in the file {SKILL_FILE} of the folder named"
    return (
        "There are instructions for these tasks. Before you begin one, read them"
        f" {where}, unless they stand below:\n{lines}"
    )


def unfolded(skill: Skill, place: str = "") -> str:
    """Return a skill's instructions for the prompt, with its further files.

    Args:
        place: as in `catalogue`; empty: its files are read with a tool.
    """
    text = f"Instructions of the skill {skill.name}:\n\n{skill.body}"
    if skill.files:
        files = "\n".join(f"- {file}" for file in skill.files)
        where = f"in {place}" if place else f"to be read with {USE_SKILL}"
        text += f"\n\nFiles of this skill, {where}:\n{files}"
    return text
