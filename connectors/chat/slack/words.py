"""What people wrote, as plain text; pure.

Source: docs.slack.dev, "Formatting text for app surfaces", retrieving messages: `<@U1>`
is a person, `<#C1|name>` a channel, `<!here>` all who are there, `<https://…|words>` a
link; `&`, `<` and `>` come escaped.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MARK = re.compile(r"<([^<>\n]{1,4000})>")
USER = re.compile(r"<@([UW][A-Z0-9]{1,30})(?:\|[^<>\n]{0,200})?>")

MOST_NAMED = 50
"""People in one message whose names are looked up."""

EVERYBODY = frozenset({"here", "channel", "everyone"})


def named(text: str) -> tuple[str, ...]:
    """Give the ids of the people whom a text mentions, each once."""
    return tuple(dict.fromkeys(USER.findall(text)))[:MOST_NAMED]


def calls_everybody(text: str) -> bool:
    """Tell whether a text calls all who are there."""
    return any(f"<!{each}" in text for each in EVERYBODY)


def plain(text: str, name_of: Callable[[str], str]) -> str:
    """Write a text as it reads on the screen.

    Args:
        text: as Slack gave it.
        name_of: gives a person's name by their id; empty: it is not known.
    """
    said = MARK.sub(lambda found: read_mark(found[1], name_of), text)
    # In this order: what was written as `&amp;lt;` is no bracket.
    return said.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def read_mark(inside: str, name_of: Callable[[str], str]) -> str:
    """Write what stands in one pair of brackets."""
    target, _, label = inside.partition("|")
    match target[:1]:
        case "@":
            return f"@{name_of(target[1:]) or label or target[1:]}"
        case "#":
            return f"#{label or target[1:]}"
        case "!":
            return called(target[1:], label)
        case _:
            return link(target, label)


def called(target: str, label: str) -> str:
    """Write what calls many, or is shown in everybody's own way."""
    kind, _, rest = target.partition("^")
    if kind == "subteam":
        return f"@{label.lstrip('@') or rest}"
    return label or (f"@{kind}" if kind in EVERYBODY else kind)


def link(target: str, label: str) -> str:
    """Write a link."""
    shown = target.removeprefix("mailto:").removeprefix("tel:")
    bare = target.partition("://")[2]
    if not label or label in {target, shown, bare, bare.rstrip("/")}:
        return shown
    return f"{label} ({shown})"
