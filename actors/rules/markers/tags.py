"""Grammar of inline directives: their names, shapes and families. Pure.

*Block tags* may occur anywhere: `[DELEGATE:ben] task [/DELEGATE]`. *Line marks* fill a
line and have a name in capitals: `SCHEDULE: text | due | repeat`. *Hidden tags*, such
as `<think>…</think>`, are what models write for themselves.

The shapes are those of the systems that users migrate from. `parser.py` and
`actions.py` define their meaning.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal, get_args

import msgspec

from actors.config.agents import MarkerFamily

Family = MarkerFamily | Literal["conductor", "files"]
"""Family of directives that are allowed together. `conductor` depends on the agent's
role and `files` on the tool `send_file`; neither is in the settings' list.
"""

FAMILIES: tuple[Family, ...] = (
    *get_args(MarkerFamily),
    "conductor",
    "files",
)

REMEMBERING: frozenset[Family] = frozenset(
    {"lesson", "memory", "purge", "reward", "state"}
)
"""Families that an agent's memory carries out, if it has one."""

MAX_BODY = 4_000
"""Longest memory, and longest line mark, in characters."""

MAX_TASK = 32_000
"""Longest delegated task, and longest text of a conductor's tag, in characters."""


class BlockTag(msgspec.Struct, frozen=True):
    """A tag with a closing tag."""

    name: str
    family: Family
    most: int = MAX_TASK
    """Longest content in characters."""

    ends_with_paragraph: bool = False
    """Whether a blank line, or the next such tag, ends an unclosed tag. Facts are
    short, and a forgotten `[/MEMORY]` must not hide the rest of an answer.
    """

    @property
    def opener(self) -> str:
        """Its opening, in lower case."""
        return f"[{self.name.lower()}"

    @property
    def closer(self) -> str:
        """Its closing tag, in lower case."""
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
    """A directive that fills a line."""

    name: str
    family: Family
    least: int = 1
    """Fewest parts between `|`; 0: nothing follows the name."""

    most: int = 1
    """Most parts; the last one contains all further bars."""

    is_word: bool = False
    """Whether people write this word as well. Then a line counts only with a bar, if
    its shape has one: `LESSON: fractions` is a heading.
    """


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
"""Names of file tags such as `[IMAGE:path]`, each on a line of its own and in capitals,
with the kind of file. In lower case this program writes them about people's files.
"""

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
"""The content of these tags is not shown."""

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
"""Turn markup of models' own formats; removed everywhere."""

BROKEN_ROLE_TAGS = ("[system]", "[assistant]", "[user]")
"""Removed only with an invisible character in them, because they were defused on the
way in. Without one they are people's words.
"""

UNSEEN = "\u200b\u2060\ufeff"
"""Invisible characters, with which tags are defused."""

USED_TOOLS = "[used tools:"
"""Beginning of the list of tools that some transcripts put before an answer."""


def _breakable(tag: str) -> str:
    """Match a tag with or without an invisible character after each letter."""
    unseen = f"[{UNSEEN}]?"
    return "".join(re.escape(letter) + unseen for letter in tag[:-1]) + tag[-1]


def _broken(tag: str) -> str:
    """Match a tag only with an invisible character in it."""
    return f"(?!{re.escape(tag)}){_breakable(tag)}"


ROLES = "|".join((*map(_breakable, ROLE_TAGS), *map(_broken, BROKEN_ROLE_TAGS)))
"""Matches a role tag, case-insensitively, intact or defused."""

_BRACKETS = "|".join(tag.name.lower() for tag in BLOCK_TAGS)
_NAMES = "|".join(mark.name for mark in LINE_MARKS)
_BARE = "|".join(mark.name for mark in LINE_MARKS if not mark.least)


@cache
def _directives() -> re.Pattern[str]:
    """Match what begins a directive; made when there is a text to defuse."""
    # Why wherever in a line: removing text before a name may make it the first.
    return re.compile(
        rf"(?ai:(\[/?)({_BRACKETS}|{USED_TOOLS[1:]})"
        rf"|(</?)({'|'.join(HIDDEN_TAGS)})(?=[^\w-]|\Z)|(?={ROLES})([<\[]))"
        rf"|(?<![A-Za-z0-9])((?:{_NAMES})(?=[*_`~]{{0,4}}[ \t]{{0,8}}:)"
        rf"|(?:{_BARE})(?![A-Za-z0-9_]))|(\[)((?:{'|'.join(MEDIA)}):)"
    )


def defuse(text: str) -> str:
    """Defuse directives, so that they have no effect if a model repeats them."""
    return _directives().sub(_quoted, text)


def _quoted(found: re.Match[str]) -> str:
    before = found[1] or found[3] or found[5] or found[7] or ""
    return f"{before}quoted {found[2] or found[4] or found[6] or found[8] or ''}"
