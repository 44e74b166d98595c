"""The tool `use_skill`: a model reads instructions when it needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import trio

from actors.messages.inbound import ToolContext, ToolResult, ToolSpec
from actors.rules.prompt import skills as rules
from actors.rules.text.similarity import did_you_mean, near_misses
from connectors.skills.folder import LONGEST_PATH, BundleError, read_bundled
from connectors.tools.arguments import ArgumentsTool, schema_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from connectors.skills.folder import SkillFolder

LONGEST_TEXT = 100_000
"""Characters of one file as it is given to a model."""

SkillName = Annotated[
    str, msgspec.Meta(max_length=64, description="the skill's name, as listed")
]
FileName = Annotated[
    str,
    msgspec.Meta(
        max_length=LONGEST_PATH,
        description="a file of the skill; left out: its instructions",
    ),
]


class UseSkillArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `use_skill` takes."""

    name: SkillName
    file: FileName = ""


class UseSkillTool(ArgumentsTool[UseSkillArguments]):
    """Gives an agent the text of one of its skills, or of a skill's file."""

    def __init__(
        self,
        skills: Mapping[str, SkillFolder],
        note: Callable[[ToolContext, str], None],
    ) -> None:
        self._skills = skills
        self._note = note
        spec = ToolSpec(
            rules.USE_SKILL,
            "Read the instructions of a skill, or one of its files.",
            schema_of(UseSkillArguments),
            is_repeatable=True,
            effect="read",
            # Why: instructions are to be followed; the operator chose the folder.
            is_own_words=True,
        )
        super().__init__(spec, UseSkillArguments)

    async def answer(
        self, arguments: UseSkillArguments, context: ToolContext
    ) -> ToolResult:
        """Give the text; what is not there is a result with `is_error`."""
        try:
            found = self._skills.get(arguments.name)
            if found is None:
                near = did_you_mean(near_misses(arguments.name, self._skills))
                text = f"there is no skill {arguments.name[:64]!r}.{near}"
                return ToolResult(text, is_error=True)
            self._note(context, arguments.name)
            if not arguments.file:
                return ToolResult(rules.unfolded(found.skill))
            text = await trio.to_thread.run_sync(
                read_bundled, found.path, arguments.file
            )
        except BundleError as error:
            text = f"the file cannot be had: {error}"
            return ToolResult(text, is_error=True)
        if len(text) > LONGEST_TEXT:
            left = len(text) - LONGEST_TEXT
            text = f"{text[:LONGEST_TEXT]}\n[cut: {left} more characters]"
        return ToolResult(text or "(the file is empty)")
