"""Tool results, tool names and tool summaries in prompts and chats. Pure.

A tool's text may come from a web page, a file or another program. So the model sees it
in a frame that names its source; see `untrusted`.

An agent that works for another agent has fewer tools.

Names of tool servers' tools:

Providers accept letters, digits, `_` and `-`, at most 64, and each name once. Servers
name their tools freely. A valid name becomes `<prefix>__<name>`; any other ends with
`__` and a part of its digest, so that it does not depend on other tools and no tool can
take the place of another server's.

People see a tool call as its name and a short summary of its arguments.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import cast

import msgspec

from actors.config.collaboration import ToolsThere
from actors.messages.inbound import ToolCall, ToolSpec
from actors.rules.prompt import untrusted


def bound(text: str, most: int) -> str:
    """Keep the beginning and the end of a text, and state how much is missing.

    Args:
        most: most characters to keep, at least 1.
    """
    if len(text) <= most:
        return text
    head = max(1, most * 2 // 3)
    tail = most - head
    end = text[-tail:] if tail else ""
    return f"{text[:head]}\n[… {len(text) - most} characters cut …]\n{end}"


def frame(key: bytes, text: str, tool: str) -> str:
    """Put a tool's result into a frame that marks it as data."""
    name = re.sub(r"[^\w-]", "_", tool)[:64]
    return untrusted.frame(key, f"what the tool {name} gave back", text)


OF_MEMORY = frozenset({"memory_search", "save_memory"})

DELEGATE = "delegate"
COLLABORATE = "collaborate"
CONSULT = "consult"

OF_COLLEAGUES = frozenset({DELEGATE, COLLABORATE, CONSULT})
"""Tools that reach other agents. An agent that works for another one has none of them,
so that no circle of questions can arise.
"""

NOT_THERE = "it is not there while another agent asks"
"""What a model is told about unavailable tools."""


def is_safe(tool: ToolSpec, there: ToolsThere) -> bool:
    """Return whether a tool is available while the agent works for another one."""
    if there == "memory":
        return tool.name in OF_MEMORY
    reads = tool.effect == "read" and tool.name not in OF_COLLEAGUES
    return there == "read" and reads


JOINT = "__"
LONGEST_NAME = 64
LONGEST_PREFIX = 32
DIGEST = 10
"""Hexadecimal digits."""

UNFIT = re.compile(r"[^A-Za-z0-9_-]+")
PREFIX = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9-])?")

SERVER = "mcp:"
"""Prefix of servers' tools in an agent's list: `mcp:files`, `mcp:files/read_*`."""


def is_prefix(text: str) -> bool:
    """Return whether a text is a valid prefix of tool names.

    It contains no `__` and no `_` at the end, as the first `__` of a name ends the
    prefix.
    """
    fits = len(text) <= LONGEST_PREFIX and PREFIX.fullmatch(text) is not None
    return fits and JOINT not in text


def offered_name(prefix: str, name: str) -> str:
    """Return the name of a server's tool for models.

    Args:
        prefix: prefix of the server; see `is_prefix`.
        name: the server's name of the tool; any text.
    """
    plain = f"{prefix}{JOINT}{name}"
    fits = UNFIT.search(name) is None and JOINT not in name and name != ""
    if fits and len(plain) <= LONGEST_NAME:
        return plain
    raw = name.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(raw).hexdigest()[:DIGEST]
    room = LONGEST_NAME - len(prefix) - 2 * len(JOINT) - DIGEST
    body = UNFIT.sub("_", name).replace(JOINT, "_")[:room].strip("_")
    return f"{prefix}{JOINT}{body or 'tool'}{JOINT}{digest}"


def server_of(wanted: str) -> str:
    """Return the server in an agent's `mcp:…` entry; empty for other entries."""
    if not wanted.startswith(SERVER):
        return ""
    return wanted.removeprefix(SERVER).partition("/")[0]


def is_wanted(wanted: Iterable[str], server: str, name: str) -> bool:
    """Return whether an agent has a server's tool.

    Args:
        wanted: the agent's list: `mcp:<server>`, or `mcp:<server>/<pattern>`.
        server: its name in the settings.
        name: the server's name of the tool.
    """
    for each in wanted:
        if server_of(each) == server:
            _, _, pattern = each.partition("/")
            if fits(pattern or "*", name):
                return True
    return False


def fits(pattern: str, name: str) -> bool:
    """Return whether a name matches a pattern with `*` and `?`."""
    return fnmatchcase(name, pattern)


# Chosen: a line on a phone; `callboard replay` shows all of it.
MOST = 160
"""Longest summary in characters."""

# Chosen: below the longest message of any platform, with room for the question.
MOST_ASKED = 1_200
"""Longest summary of an approval request, in characters."""

_SECRET = re.compile(
    r"(?i)pass|secret|token|api.?key|authori[sz]ation|credential|cookie"
)
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069]+")
_BREAK = re.compile(r"[\n\r\v\f\x85\u2028\u2029]+")
# Never change quotes: in a shell, one kind prevents a command from running and the
# other runs it.
_BACKTICK = "\N{MODIFIER LETTER GRAVE ACCENT}"
HIDDEN = "…"


def summary(call: ToolCall, redact: Callable[[str], str], most: int = MOST) -> str:
    """Summarise the arguments of a call in one line, without secrets.

    Args:
        redact: removes the values of secrets from a text.
        most: longest summary in characters, above 50. The end of a longer text is kept
            as well, since the important part may be there.
    """
    try:
        arguments: object = msgspec.json.decode(call.arguments)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        arguments = call.arguments.decode("utf-8", "replace")
    told = _BREAK.sub(" \N{RETURN SYMBOL} ", redact(_told(arguments)))
    text = _UNSEEN.sub(" ", told).replace("`", _BACKTICK).strip()
    if len(text) <= most:
        return text
    left_out = f" {HIDDEN} {len(text) - most:,} and more characters {HIDDEN} "
    half, rest = divmod(most - len(left_out), 2)
    return text[: half + rest] + left_out + text[-half:]


def _told(arguments: object) -> str:
    if not isinstance(arguments, dict):
        return _value(arguments)
    named = cast("dict[str, object]", arguments)
    shown = {
        name: HIDDEN if _SECRET.search(name) else _value(value)
        for name, value in named.items()
    }
    if len(shown) == 1:
        return next(iter(shown.values()))
    return ", ".join(f"{name}: {value}" for name, value in shown.items())


def _value(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "{" + _told(cast("dict[str, object]", value)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, cast("list[object]", value))) + "]"
    return msgspec.json.encode(value).decode()


def name_of(tool: str) -> str:
    """Return a tool's name in a form that is safe between backticks."""
    return _UNSEEN.sub("", tool).replace("`", _BACKTICK)[:64]


def started(call: ToolCall, redact: Callable[[str], str]) -> str:
    """Return the notice that a tool runs."""
    told = summary(call, redact)
    line = f"\N{WRENCH} `{name_of(call.name)}`"
    return f"{line}: {told}" if told else line
