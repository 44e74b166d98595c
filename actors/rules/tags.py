"""All that a model may write for the runtime: names, shapes, who may use it; pure.

Three shapes. *Block tags* stand anywhere, `[DELEGATE:ben] task [/DELEGATE]`. *Line
marks* fill a line, `SCHEDULE: text | due | repeat`; their names are written large.
*Hidden tags*, `<think>…</think>`, are what models write for themselves.

The shapes are those of the systems that people come from. What a mark of each family
means, and what becomes of it, `rules/reading.py` and `rules/actions.py` say.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

import msgspec

from actors.marker_config import MarkerFamily

Family = MarkerFamily | Literal["conductor", "files"]
"""What is allowed or not: all marks of one family together. A conductor's belong to
the role, those of files to the tool `send_file`, and to no list."""

FAMILIES: tuple[Family, ...] = (
    *get_args(MarkerFamily),
    "conductor",
    "files",
)

REMEMBERING: frozenset[Family] = frozenset(
    {"lesson", "memory", "purge", "reward", "state"}
)
"""Those of them that an agent's memory carries out, if it has one."""

MAX_BODY = 4_000
"""Most characters of one thing to be remembered, and of one line mark."""

MAX_TASK = 32_000
"""Most characters of a task that is handed on, or of what a conductor writes."""


class BlockTag(msgspec.Struct, frozen=True):
    """A tag with a closing tag."""

    name: str
    family: Family
    most: int = MAX_TASK
    """Characters between the tags."""

    ends_with_paragraph: bool = False
    """Whether a blank line, or the next such tag, ends one that was not closed. Facts
    are short, and a forgotten `[/MEMORY]` must not hide the rest of an answer."""

    @property
    def opener(self) -> str:
        """How it begins, in lower case."""
        return f"[{self.name.lower()}"

    @property
    def closer(self) -> str:
        """How it ends, in lower case."""
        return f"[/{self.name.lower()}]"


BLOCK_TAGS = (
    BlockTag("DELEGATE", "delegation"),
    BlockTag("MEMORY", "memory", MAX_BODY, ends_with_paragraph=True),
    BlockTag("STATE", "state", MAX_BODY, ends_with_paragraph=True),
    BlockTag("CREATE_AGENT", "conductor"),
    BlockTag("UPDATE_AGENT", "conductor"),
    BlockTag("CREATE_CRON", "conductor"),
    BlockTag("CREATE_HEARTBEAT", "conductor"),
    BlockTag("CREATE_CLIENT", "conductor"),
)


class LineMark(msgspec.Struct, frozen=True):
    """A mark that fills a line."""

    name: str
    family: Family
    least: int = 1
    """Parts between `|` that it must have; 0: nothing at all follows the name."""

    most: int = 1
    """Parts that it may have; the last takes all further bars."""

    is_word: bool = False
    """Whether people write this word, too. Then a line is one only if it has a bar,
    should the shape have one: `LESSON: fractions` is a heading."""


LINE_MARKS = (
    LineMark("SCHEDULE", "schedule", 2, 3, is_word=True),
    LineMark("SCHEDULE_ACTION", "schedule", 2, 3),
    LineMark("CANCEL_TASK", "schedule"),
    LineMark("UPDATE_TASK", "schedule", 2, 4),
    LineMark("REWARD", "reward", 3, 3, is_word=True),
    LineMark("LESSON", "lesson", 2, 2, is_word=True),
    LineMark("PERSONALITY", "personality", is_word=True),
    LineMark("LANG_SWITCH", "language"),
    LineMark("FORGET_CONVERSATION", "forget", 0, 0),
    LineMark("HEARTBEAT_ADD", "heartbeat"),
    LineMark("HEARTBEAT_REMOVE", "heartbeat"),
    LineMark("HEARTBEAT_INTERVAL", "heartbeat"),
    LineMark("SKILL_IMPROVE", "skill", 2, 2),
    LineMark("BUG_REPORT", "bug"),
    LineMark("PROJECT_ACTIVATE", "project"),
    LineMark("PROJECT_DEACTIVATE", "project", 0, 0),
    LineMark("PURGE_FACTS", "purge", 0, 0),
)

MEDIA: dict[str, Literal["image", "document", "audio", "voice", "video", ""]] = {
    "IMAGE": "image",
    "DOCUMENT": "document",
    "AUDIO": "audio",
    "VOICE": "voice",
    "VIDEO": "video",
    "FILE": "",
}
"""Names of `[IMAGE:path]` and its like, each in a line of its own and written large:
how the file is to be shown. Small, they are what this program writes of files that
people sent."""

BLOCKS = {tag.name: tag for tag in BLOCK_TAGS}
LINES = {mark.name: mark for mark in LINE_MARKS}
FAMILY_OF: dict[str, Family] = {
    **{name: tag.family for name, tag in BLOCKS.items()},
    **{name: mark.family for name, mark in LINES.items()},
    **dict.fromkeys(MEDIA, "files"),
}

TOOL_TAGS = (
    "tool_call",
    "tool_calls",
    "toolcall",
    "tool-call",
    "tool_use",
    "invoke",
    "function_call",
    "function_calls",
    "tool_result",
    "tool_results",
    "tool_response",
    "function_result",
    "function_results",
)
THINKING_TAGS = ("think", "thinking", "thought", "reasoning", "antthinking")
HIDDEN_TAGS = (*TOOL_TAGS, *THINKING_TAGS)
"""What stands between these tags is not shown."""

ROLE_TAGS = (
    "<|im_start|>",
    "<|im_end|>",
    "<|im_sep|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|begin_of_text|>",
    "<<sys>>",
    "<</sys>>",
    "[inst]",
    "[/inst]",
)
"""What models' own formats mark turns with; taken out wherever it stands."""

BROKEN_ROLE_TAGS = ("[system]", "[assistant]", "[user]")
"""Taken out only with something unseen in them: so they were broken on the way in.
Whole, they are words that people use."""

UNSEEN = "\u200b\u2060\ufeff"
"""What nobody sees, and what tags are broken with."""

USED_TOOLS = "[used tools:"
"""How the list of tools begins that some transcripts put before an answer."""


def _breakable(tag: str) -> str:
    """Match a tag with or without something unseen after each letter."""
    unseen = f"[{UNSEEN}]?"
    return "".join(re.escape(letter) + unseen for letter in tag[:-1]) + tag[-1]


def _broken(tag: str) -> str:
    """Match a tag only with something unseen in it."""
    return f"(?!{re.escape(tag)}){_breakable(tag)}"


ROLES = "|".join((*map(_breakable, ROLE_TAGS), *map(_broken, BROKEN_ROLE_TAGS)))
"""What matches a role tag, in any case, whole or broken."""

_BRACKETS = "|".join(tag.name.lower() for tag in BLOCK_TAGS)
_NAMES = "|".join(mark.name for mark in LINE_MARKS)
_BARE = "|".join(mark.name for mark in LINE_MARKS if not mark.least)
# Why wherever in a line: what is taken out before a name may make it the first.
_MARK = re.compile(
    rf"(?ai:(\[/?)({_BRACKETS}|{USED_TOOLS[1:]})"
    rf"|(</?)({'|'.join(HIDDEN_TAGS)})(?=[^\w-]|\Z)|(?={ROLES})([<\[]))"
    rf"|(?<![A-Za-z0-9])((?:{_NAMES})(?=[*_`~]{{0,4}}[ \t]{{0,8}}:)"
    rf"|(?:{_BARE})(?![A-Za-z0-9_]))|(\[)((?:{'|'.join(MEDIA)}):)"
)


def defuse(text: str) -> str:
    """Take the meaning out of marks: repeated by a model, they are mere words."""
    return _MARK.sub(_quoted, text)


def _quoted(found: re.Match[str]) -> str:
    before = found[1] or found[3] or found[5] or found[7] or ""
    return f"{before}quoted {found[2] or found[4] or found[6] or found[8] or ''}"
