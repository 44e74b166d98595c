"""Cuts a long reply into messages that a platform takes; pure.

It cuts between paragraphs, else between lines, sentences, words or letters; rather
before a line with less indentation, and not inside a link, code or emphasis if that can
be avoided. Only white space at a cut is dropped. A code block that must be cut is
closed and opened again, with its language, in the next part; a quote goes on as a
quote, a table under its head.

A growing text keeps its cuts: all parts but the last are those of its beginning. Drafts
rely on that (`actors/outbound/draft_rules.py`). Letters are grapheme clusters of
Unicode Annex 29, as far as Python's own tables go.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

import msgspec

from actors.messages.deliveries import Abilities
from actors.rules.text.measure import CHARACTERS, Measure, closes, fence_of

ZWJ = "\u200d"
VIRAMA = 9  # combining class of signs that join two consonants

# Chosen: the longest emoji of Unicode 16 have ten; more are piled-up accents.
MOST = 32
"""Most code points of one grapheme cluster that are kept together."""


def boundary(text: str, at: int) -> int:
    """Give the last place, at most `at`, where a text may be cut; above 0.

    Args:
        at: from 1 to its length.
    """
    for place in range(at, max(at - MOST, 0), -1):
        if place == len(text) or not _is_joined(text, place):
            return place
    return at


def _is_joined(text: str, at: int) -> bool:
    """Tell whether the characters on both sides of a place are one cluster."""
    before, after = text[at - 1], text[at]
    if before.isascii() and after.isascii():
        return before == "\r" and after == "\n"
    if _extends(after):
        return True
    if _is_flag(before) and _is_flag(after):
        return _flags_before(text, at) % 2 == 1
    is_conjunct = unicodedata.combining(before) == VIRAMA and after.isalpha()
    is_pair = "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff"
    return before == ZWJ or is_conjunct or is_pair or _is_korean(before, after)


def _extends(letter: str) -> bool:
    return (
        letter == ZWJ
        or unicodedata.category(letter) in {"Mn", "Me", "Mc"}
        or "\U0001f3fb" <= letter <= "\U0001f3ff"  # colours of skin
        or "\U000e0020" <= letter <= "\U000e007f"  # tags, as in Scotland's flag
    )


def _is_flag(letter: str) -> bool:
    return "\U0001f1e6" <= letter <= "\U0001f1ff"


def _flags_before(text: str, at: int) -> int:
    begin = at
    while begin > 0 and _is_flag(text[begin - 1]):
        begin -= 1
    return at - begin


def _is_korean(before: str, after: str) -> bool:
    """Tell whether two characters are parts of one syllable."""
    if "\u1160" <= after <= "\u11ff":  # a vowel or an end follows
        return "\u1100" <= before <= "\u11ff" or "\uac00" <= before <= "\ud7a3"
    is_begun = "\u1100" <= before <= "\u115f"
    return is_begun and ("\u1100" <= after <= "\u115f" or "\uac00" <= after <= "\ud7a3")


# Chosen: longer than the links and emphasis that models write; an end further away is
# not looked for, so that odd text costs no time.
MOST_SPAN = 300

SPAN = re.compile(
    rf"(?P<ticks>`+)[^`]{{1,{MOST_SPAN}}}(?:(?P=ticks)|\Z)"
    rf"|!?\[[^\[\]\n]{{0,{MOST_SPAN}}}(?:\](?:\([^()\s]*(?:[\s\"][^()]*)?(?:\)|\Z))|\]?\Z)"
    r"|<https?://[^>\s]*"
    rf"|(?P<pair>\*\*|__|~~)(?=\S)[^\n]{{1,{MOST_SPAN}}}?(?:(?P=pair)|\Z)"
    rf"|(?<!\w)(?P<one>[*_])(?=[^\s*_])[^*_\n]{{1,{MOST_SPAN}}}(?:(?P=one)|\Z)"
)
SENTENCE = re.compile(r"[.!?\u2026][\"')\]*_\u201d\u2019]*(?=\s)|[\u3002\uff01\uff1f]")
QUOTED = re.compile(r"(?: {0,3}> ?)+")
ITEM = re.compile(r"(?P<indent> +)(?:[-*+]|\d{1,9}[.)])(?: |$)")
CELL = r"[ \t]*:?-+:?[ \t]*"
UNDER_HEAD = re.compile(rf" {{0,3}}(?:\|{CELL}(?:\|{CELL})*\|?|{CELL}(?:\|{CELL})+\|?)")
"""The line between a table's head and its rows."""

MOST_HEAD = 4
"""A head takes at most the fourth of a part, so that each has rows of its own."""


def cut_of(text: str, most: int) -> int:
    """Find the best place for a cut.

    Args:
        text: longer than `most` characters.
        most: how many characters there is room for; at least 1.

    Returns:
        How many characters are before it; from 1 to `most`.
    """
    # Why half: a first paragraph of three words should not be a message of its own.
    least = max(most // 2, 1)
    spans = _spans(text, least, most)
    places = [*_blocks(text, least, most), *_words(text, least, most)]
    for place in places:
        if not any(begin < place < end for begin, end in spans):
            return place
    return places[0] if places else boundary(text, most)


def resumed(text: str, cut: int) -> str:
    """Give the rest after a cut, so that it means the same by itself.

    A quote that is cut inside a line goes on as a quote; items of a nested list keep
    their depth below the first one that is left.
    """
    rest = text[cut:].lstrip()
    is_line = "\n" in text[cut - 1 : len(text) - len(rest)]
    if not is_line:
        line = text[text.rfind("\n", 0, cut) + 1 : cut]
        found = QUOTED.match(line)
        is_small = found is not None and 4 * len(found[0]) < cut
        return f"{found[0]}{rest}" if found is not None and is_small else rest
    begin = text.rfind("\n", 0, len(text) - len(rest)) + 1
    item = ITEM.match(text, begin)
    return _outdented(rest, len(item["indent"])) if item else rest


def _outdented(text: str, depth: int) -> str:
    """Outdent the lines that are indented as much as the first was."""
    first, *lines = text.split("\n")
    blanks = " " * depth
    for index, line in enumerate(lines):
        if line.startswith(blanks):
            lines[index] = line[depth:]
        elif line.strip():
            break
    return "\n".join([first, *lines])


def _spans(text: str, least: int, most: int) -> Sequence[tuple[int, int]]:
    """Find spans that should not be cut; one may reach beyond the room."""
    begin = max(text.rfind("\n", 0, least) + 1, least - 2 * MOST_SPAN)
    found = SPAN.finditer(text[begin : most + 1])
    return [(begin + each.start(), begin + each.end()) for each in found]


def _blocks(text: str, least: int, most: int) -> Iterator[int]:
    """Give the places between paragraphs, then between lines; the best first."""
    for separator in ("\n\n", "\n"):
        found = list(_found(text, separator, least, most))
        after = [place + len(separator) for place in found]
        yield from (
            place
            for place, next_at in zip(found, after, strict=True)
            if next_at <= most and not text[next_at].isspace()
        )
        yield from found


def _words(text: str, least: int, most: int) -> Iterator[int]:
    """Give the places between sentences, then between words; the best first."""
    ends = [each.end() for each in SENTENCE.finditer(text, least, most + 1)]
    yield from (place for place in reversed(ends) if place <= most)
    yield from _found(text, " ", least, most)


def _found(text: str, separator: str, least: int, most: int) -> Iterator[int]:
    place = text.rfind(separator, least, most + 1)
    while place > 0:
        yield place
        place = text.rfind(separator, least, place + len(separator) - 1)


class Opened(msgspec.Struct, frozen=True):
    """A code block that is not closed yet."""

    at: int
    """Where its first line begins."""

    line: str
    """The first line, with the language."""

    mark: str
    """The backticks or tildes that close it."""

    @property
    def body_at(self) -> int:
        """Where its code begins."""
        return self.at + len(self.line) + 1


class TableHead(msgspec.Struct, frozen=True):
    """The first two lines of a table whose rows are cut."""

    at: int
    """Where it begins."""

    lines: str
    has_rows: bool
    """Whether rows stand before the cut."""


def split(text: str, most: int, measure: Measure = CHARACTERS) -> list[str]:
    """Cut a text into parts of at most `most`.

    Args:
        most: most units of a part; 0: no limit.
        measure: counts the units of a text; by default every character counts 1.

    Returns:
        The parts, none of them blank; a blank text has none.
    """
    parts: list[str] = []
    is_whole = most <= 0 or measure.reach(text, most) >= len(text)
    rest = text if is_whole else text.strip()
    while most > 0 and (room := measure.reach(rest, most)) < len(rest):
        part, rest = _next(rest, most, max(room, 1), measure)
        parts.append(part)
    return [part for part in (*parts, rest) if part.strip()]


def for_platform(text: str, can: Abilities) -> list[str]:
    """Cut a text into the messages that a transport takes."""
    return split(text, can.max_part_chars, can.measure)


def opened(text: str) -> Opened | None:
    """Give the code block that a text does not close, if there is one."""
    found: Opened | None = None
    at = 0
    for line in text.split("\n"):
        if found is not None:
            found = None if closes(found.mark, line) else found
        elif mark := fence_of(line):
            found = Opened(at, line, mark)
        at += len(line) + 1
    return found


def closed(text: str) -> str:
    """Close every code block of a text."""
    found = opened(text)
    if found is None:
        return text
    return f"{text}{'' if text.endswith(chr(10)) else chr(10)}{found.mark}"


def table_head(text: str, cut: int) -> TableHead | None:
    """Give the head of the table whose last line ends at a cut; None: there is none."""
    if text[cut : cut + 1] != "\n" and text[cut - 1] != "\n":
        return None
    lines = text[:cut].removesuffix("\n").split("\n")
    for index in range(len(lines) - 1, 0, -1):
        if "|" not in lines[index]:
            return None
        if UNDER_HEAD.fullmatch(lines[index]) and "|" in lines[index - 1]:
            at = sum(len(line) + 1 for line in lines[: index - 1])
            head = "\n".join(lines[index - 1 : index + 1])
            return TableHead(at, head, has_rows=index + 1 < len(lines))
    return None


def _cut_prose(text: str, cut: int, room: int) -> tuple[str, str]:
    """Cut outside of code; rows that are left go on under the head of their table."""
    rest = resumed(text, cut)
    head = table_head(text, cut)
    if head is None or MOST_HEAD * len(head.lines) > room:
        return text[:cut].rstrip(), rest
    if head.at > 0 and not head.has_rows:
        return text[: head.at].rstrip(), text[head.at :]
    row = text[cut:].removeprefix("\n").partition("\n")[0]
    return text[:cut].rstrip(), f"{head.lines}\n{rest}" if "|" in row else rest


def _next(text: str, most: int, room: int, measure: Measure) -> tuple[str, str]:
    """Give the next part, and the rest; `room` characters take at most `most`."""
    cut = cut_of(text, room)
    found = opened(text[:cut])
    # A small part has no room to close a code block and to open it again.
    if found is None or 2 * len(found.mark) + 2 > room // 2:
        return _cut_prose(text, cut, room)
    limit = min(cut, measure.reach(text, most - measure.size(f"\n{found.mark}")))
    has_line = text.find("\n", found.body_at + 1, limit + 1) > 0
    if found.at > 0 and (found.at > room // 2 or not has_line):
        return text[: found.at].rstrip(), text[found.at :]
    is_short = len(found.line) + len(found.mark) + 2 <= room // 2
    return _cut_code(text, found, limit, found.line if is_short else found.mark)


def _cut_code(text: str, found: Opened, limit: int, again: str) -> tuple[str, str]:
    """Cut between two lines of code; a line that is too long, after a blank."""
    end = f"\n{found.mark}"
    cut = text.rfind("\n", found.body_at + 1, limit + 1)
    skipped = 1 if cut > 0 else 0
    if cut <= 0:
        blank = text.rfind(" ", max(found.body_at, limit // 2), limit)
        cut = blank + 1 if blank > 0 else boundary(text, limit)
    rest = text[cut + skipped :]
    after = rest.lstrip()
    first, _, others = after.partition("\n")
    if not after or closes(found.mark, first):
        rest = others.lstrip()  # the code block ends here anyway
    else:
        rest = f"{again.rstrip()}\n{rest}"
    return f"{text[:cut]}{end}", rest
