"""The checklist of a heartbeat: read from a file and grouped; pure.

The file is Markdown as people write it: a heading names a domain, and each line below
it, mostly with a dash, is an item. What is ticked off (`- [x]`) and what stands in a
comment is left out. An item that somebody had put on the list in a chat may name a
domain itself: `email: look for bills`.
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
_HEADING = re.compile(r" {0,3}#{1,6}\s+(.*?)\s*#*\s*")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])(?:\s+(?:\[([ xX])\](?:\s+|\Z))?(.*)|\Z)")
_RULE = re.compile(r"\s*(?:[-*_=]\s*){3,}")
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
    found: list[ChecklistItem] = []
    domain, is_open = "", False
    for line in _COMMENT.sub("", text).splitlines():
        if not line.strip() or _RULE.fullmatch(line):
            is_open = False
        elif heading := _HEADING.fullmatch(line):
            domain, is_open = heading[1][:LONGEST_DOMAIN].strip(), False
        elif item := _ITEM.fullmatch(line):
            words = (item[2] or "").strip()
            is_open = bool(words) and item[1] not in {"x", "X"}
            if is_open:
                found.append(ChecklistItem(_line(words), domain))
        elif line[0].isspace():
            if is_open:  # a further line of the item before
                found[-1] = ChecklistItem(_line(f"{found[-1].text} {line}"), domain)
        else:
            found.append(ChecklistItem(_line(line), domain))
            is_open = True
    return tuple(found)


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
