"""Which parts of memory a question needs, judged by its words; pure.

Off, everything is always loaded. On, the words of a subject decide, as they do about
the sections of a prompt. Profile, lessons and what sticks are never gated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from actors.rules.prompt.topics import speaks_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from actors.config.prompt import GateName

Need = Literal["outcomes", "tasks", "summaries", "recall"]
"""Rewards of late; what is planned; earlier conversations; what has to do with it."""

EVERYTHING: frozenset[Need] = frozenset(get_args(Need))

SUBJECTS: Mapping[Need, GateName] = {
    "outcomes": "outcomes",
    "tasks": "scheduling",
    "summaries": "recall",
    "recall": "recall",
}


def needs(question: str, *, is_gated: bool) -> frozenset[Need]:
    """Say what a question needs; all of it unless the gates are on."""
    if not is_gated:
        return EVERYTHING
    return frozenset(
        need for need, subject in SUBJECTS.items() if speaks_of(question, subject)
    )
