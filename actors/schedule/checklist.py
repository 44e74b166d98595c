"""The checklist of a heartbeat: read from a file and grouped; pure.

The file is Markdown as people write it: a heading names a domain, and each line below
it, mostly with a dash, is an item. Left out is what is ticked off (`- [x]`), stands in
a comment, or below a heading such as "Completed"; and so are paragraphs between a
heading and those below it, which explain the list. An item that somebody had put on
the list in a chat may name a domain itself: `email: look for bills`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

LONGEST_ITEM = 1_000
"""Characters of one item; of a longer one the rest is left out, and told so."""

LONGEST_DOMAIN = 60

OTHERS = "others"
"""What the last group is called that holds several domains."""

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*?)\s*#*\s*")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])(?:\s+(?:\[([ xX])\](?:\s+|\Z))?(.*)|\Z)")
_RULE = re.compile(r"\s*(?:(?:[-*_=]\s*){3,}|```.*|~~~.*)")
_OVER = frozenset({"completed", "completed tasks", "done"})
"""Headings, in small letters, below which nothing is to be looked after any more."""

_PREFIX = re.compile(r"([^\W\d_](?:[\w &/-]{0,40}[^\W_])?):\s+(?=\S)")


class ChecklistItem(msgspec.Struct, frozen=True):
    """One thing that a heartbeat looks after."""

    text: str
    domain: str = ""
    """What it is about; empty: nobody says."""


class ChecklistGroup(msgspec.Struct, frozen=True):
    """Items that one run looks after together."""

    domain: str
    lines: tuple[str, ...]
    """As a model is told them."""


def parse(text: str) -> tuple[ChecklistItem, ...]:
    """Read a file's items, in their order."""
    sections = _sections(_COMMENT.sub("", text))
    levels = [level for level, _, _ in sections]
    found: list[ChecklistItem] = []
    over = 0  # the level of the heading below which all is done; 0: none
    for (level, domain, lines), after in zip(sections, [*levels[1:], 0], strict=True):
        if not over or level <= over:
            over = level if domain.casefold() in _OVER else 0
        if lines and not over:
            found += _items(lines, domain, is_explained=0 < level < after)
    return tuple(found)


def _sections(text: str) -> list[tuple[int, str, list[str]]]:
    """Give each heading's level (0: there is none yet) and text, with its lines."""
    found: list[tuple[int, str, list[str]]] = [(0, "", [])]
    for line in text.splitlines():
        if heading := _HEADING.fullmatch(line):
            title = heading[2][:LONGEST_DOMAIN].strip()
            found.append((len(heading[1]), title, []))
        else:
            found[-1][2].append(line)
    return found


def _items(
    lines: Iterable[str], domain: str, *, is_explained: bool
) -> list[ChecklistItem]:
    """Read the items below one heading.

    Args:
        is_explained: whether paragraphs explain the headings below it.
    """
    found: list[ChecklistItem] = []
    is_open = False
    for line in lines:
        if not line.strip() or _RULE.fullmatch(line):
            is_open = False
        elif item := _ITEM.fullmatch(line):
            words = (item[2] or "").strip()
            is_open = bool(words) and item[1] not in {"x", "X"}
            if is_open:
                found.append(ChecklistItem(_line(words), domain))
        elif line[0].isspace():
            if is_open:  # a further line of the item before
                found[-1] = ChecklistItem(_line(f"{found[-1].text} {line}"), domain)
        else:
            is_open = not is_explained
            if is_open:
                found.append(ChecklistItem(_line(line), domain))
    return found


def with_asked(
    items: Sequence[ChecklistItem], asked: Iterable[str]
) -> tuple[ChecklistItem, ...]:
    """Add what people have put on the list in a chat.

    A word and a colon before it name its domain if the file has that one, or if several
    begin so.
    """
    texts = [_line(each) for each in asked]
    known = {each.domain.casefold(): each.domain for each in items if each.domain}
    words = [match[1] for each in texts if (match := _PREFIX.match(each))]
    counts = Counter(word.casefold() for word in words)
    for word in words:
        if counts[word.casefold()] > 1:
            known.setdefault(word.casefold(), word)
    added: list[ChecklistItem] = []
    for each in texts:
        match = _PREFIX.match(each)
        domain = known.get(match[1].casefold(), "") if match else ""
        rest = each[match.end() :] if match and domain else each
        added.append(ChecklistItem(rest, domain))
    return (*items, *added)


def grouped(items: Sequence[ChecklistItem], most: int) -> tuple[ChecklistGroup, ...]:
    """Put items together by domain, in the order in which those come first.

    Args:
        items: what there is to look after.
        most: groups at most; the last one holds what more domains there are.
    """
    by_domain: dict[str, list[ChecklistItem]] = {}
    for each in items:
        by_domain.setdefault(each.domain.casefold(), []).append(each)
    lists = list(by_domain.values())
    alone = lists if len(lists) <= most else lists[: most - 1]
    groups = [
        ChecklistGroup(each[0].domain, tuple(f"- {item.text}" for item in each))
        for each in alone
    ]
    rest = lists[len(alone) :]
    if rest:
        name = OTHERS if alone else ""
        groups.append(ChecklistGroup(name, tuple(_headed(rest))))
    return tuple(groups)


def _headed(lists: Iterable[Sequence[ChecklistItem]]) -> Iterable[str]:
    """Give the lines of several domains."""
    for each in lists:
        if each[0].domain:
            yield f"{each[0].domain}:"
        for item in each:
            yield f"- {item.text}"


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_ITEM else f"{line[: LONGEST_ITEM - 1]}…"
