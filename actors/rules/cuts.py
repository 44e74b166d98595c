"""Where a text that is too long is best cut; pure.

Between paragraphs, else between lines, else between sentences, else between words, else
between letters; rather before what is indented less, and not inside a link, code or
marked words if that can be helped. Nothing after the place that must be cut counts, so
that a text that grows keeps its cuts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from actors.rules.graphemes import boundary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Chosen: longer than the links and marked words that models write; an end further away
# is not looked for, so that odd text costs no time.
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


def cut_of(text: str, most: int) -> int:
    """Find the best place for a cut.

    Args:
        text: longer than `most` letters.
        most: how many letters there is room for; at least 1.

    Returns:
        How many letters stand before it; from 1 to `most`.
    """
    # Why half: a first paragraph of three words is no message of its own.
    least = max(most // 2, 1)
    spans = _spans(text, least, most)
    places = [*_blocks(text, least, most), *_words(text, least, most)]
    for place in places:
        if not any(begin < place < end for begin, end in spans):
            return place
    return places[0] if places else boundary(text, most)


def resumed(text: str, cut: int) -> str:
    """Give what is left after a cut, so that it means the same by itself.

    A quote that is cut inside a line goes on as a quote; of a list inside another, the
    items keep their depths below the first that is left.
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
    """Move the lines that are indented as much as the first was."""
    first, *lines = text.split("\n")
    blanks = " " * depth
    for index, line in enumerate(lines):
        if line.startswith(blanks):
            lines[index] = line[depth:]
        elif line.strip():
            break
    return "\n".join([first, *lines])


def _spans(text: str, least: int, most: int) -> Sequence[tuple[int, int]]:
    """Find what is better not cut; a span may go on after what there is room for."""
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
