"""Instructions for inline directives in the prompt, each with examples. Pure.

`tags.py` has the grammar, and a test parses every example. Delegation and the
conductor's tags are described with the list of agents.

Why no example stands in backticks: a directive in code counts as an example, and models
copy what they see.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import msgspec

from actors.rules.markers.tags import Family

TITLE = (
    "What these marks ask for is really done, and people do not see them. Use one where"
    " there is reason to, written just so, never in code; the words in capitals begin a"
    " line of their own."
)


class MarkText(msgspec.Struct, frozen=True):
    """Instructions for one family."""

    family: Family
    purpose: str
    examples: tuple[str, ...]

    @property
    def text(self) -> str:
        """Its text in the prompt."""
        return "\n".join((f"- {self.purpose}:", *self.examples))


MARKS = (
    MarkText(
        "memory",
        "A fact that will matter later (or sticky: never to be lost; profile: who they"
        " are; project_context; learned_pattern); no secrets",
        ("[MEMORY:user_preference] Prefers tea [/MEMORY]",),
    ),
    MarkText(
        "state",
        "A value that changes, by its name",
        ("[STATE:order] paid [/STATE]",),
    ),
    MarkText(
        "lesson",
        "A rule learnt, with its subject",
        ("LESSON: travel|Give prices in euros",),
    ),
    MarkText(
        "reward",
        "How your help went: +1, 0 or -1",
        ("REWARD: +1|travel|They liked the table",),
    ),
    MarkText(
        "language",
        "They want another language",
        ("LANG_SWITCH: de",),
    ),
    MarkText(
        "personality",
        "How they want to be spoken to",
        ("PERSONALITY: brief and formal",),
    ),
    MarkText(
        "forget",
        "They want this conversation closed",
        ("FORGET_CONVERSATION",),
    ),
    MarkText(
        "purge",
        "They want all forgotten that is known of them",
        ("PURGE_FACTS",),
    ),
    MarkText(
        "schedule",
        "Remind them, or do it yourself then; with or without repeat (daily, weekdays,"
        " weekly, monthly, yearly, every 2h); change or cancel by id",
        (
            "SCHEDULE: Call Mia | 2030-01-31 09:00 | weekly",
            "SCHEDULE_ACTION: Sum up the news | in 20 minutes",
            "UPDATE_TASK: 3f9a | Call Ben | 2030-01-31 10:00 | once",
            "CANCEL_TASK: 3f9a",
        ),
    ),
    MarkText(
        "heartbeat",
        "What to look after at each of your rounds, and minutes between them",
        (
            "HEARTBEAT_ADD: unpaid bills",
            "HEARTBEAT_REMOVE: unpaid bills",
            "HEARTBEAT_INTERVAL: 30",
        ),
    ),
    MarkText(
        "project",
        "They begin work on a project, or end it",
        ("PROJECT_ACTIVATE: orchard", "PROJECT_DEACTIVATE"),
    ),
    MarkText(
        "skill",
        "What a skill of yours should say for the next time",
        ("SKILL_IMPROVE: invoices | Check the date first",),
    ),
    MarkText(
        "bug",
        "Something of this program went wrong",
        ("BUG_REPORT: The clock was an hour late",),
    ),
)
"""In the order of the prompt; if there is no room for all, the first ones are kept."""

LATER: frozenset[Family] = frozenset({"schedule", "heartbeat"})
"""Families of the subject `scheduling`."""

SAVE = "save_memory"
"""The tool that does the same as directives of the family `memory`."""


def told(
    families: Collection[Family], tools: Collection[str], mode: Mode
) -> list[MarkText]:
    """Select the instructions.

    Args:
        families: families that this agent may use.
        mode: an agent that answers another agent gets only those of memory.
    """
    return [
        mark
        for mark in MARKS
        if mark.family in families
        and (mode not in SPOKEN_TO or mark.family == "memory")
        and not (mark.family == "memory" and SAVE in tools)
    ]


Mode = Literal["conversation", "collaboration", "visible", "planning", "autonomous"]
"""Purpose of a turn: answer people; answer another agent, in private or visibly in a
group; plan autonomous work; do it.
"""


SPOKEN_TO: frozenset[Mode] = frozenset({"collaboration", "visible"})
"""Modes in which it answers another agent, with fewer rights."""
