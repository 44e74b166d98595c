"""Words by which a model says that it has nothing to say (F263, F265, F266); pure.

They come wrapped in whatever formatting a model likes: `**HEARTBEAT_OK**`, "NO_REPLY.",
`[done]`. Such a word counts where it fills a line or ends one, and in front of a line
if a mark follows (`HEARTBEAT_OK: all quiet`). In the midst of a sentence it is a word.
"""

from __future__ import annotations

import re
import unicodedata

SURE = (
    "heartbeat_ok",
    "no_reply",
    "announce_skip",
    "reply_skip",
    "[heartbeat_ok]",
    "[no_reply]",
    "[announce_skip]",
    "[reply_skip]",
    "[done]",
    "[silent]",
    "[ignore]",
)
"""Nobody else writes these, in whatever case."""

UNSURE = ("IGNORE",)
"""People write this, too: it counts if it is all that is said."""

FORMATTING = (
    ">#*_`~\"'.,:;!?()|\N{HORIZONTAL ELLIPSIS}\N{EN DASH}\N{EM DASH}-"
    "\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}"
    "\N{DOUBLE LOW-9 QUOTATION MARK}\N{LEFT SINGLE QUOTATION MARK}"
    "\N{RIGHT SINGLE QUOTATION MARK}\N{SINGLE LOW-9 QUOTATION MARK}"
    "\N{LEFT-POINTING DOUBLE ANGLE QUOTATION MARK}"
    "\N{RIGHT-POINTING DOUBLE ANGLE QUOTATION MARK}"
    "\N{IDEOGRAPHIC FULL STOP}\N{FULLWIDTH EXCLAMATION MARK}\N{FULLWIDTH COMMA}"
    "\N{INVERTED EXCLAMATION MARK}\N{ZERO WIDTH SPACE}\N{ZERO WIDTH NO-BREAK SPACE}"
)
"""What may stand around such a word."""

TAIL = 200
"""Characters at the end of a line in which such words are looked for."""

BLANKS = " \t\r"

MOST_DRESSED = 2_000
"""Characters of a text in which a word in other clothes is looked for."""

_SURE = frozenset(SURE)
_BEGINNINGS = frozenset(
    word.strip("_")[:length] for word in SURE for length in range(1, len(word) + 1)
)
_FIRSTS = frozenset(FORMATTING).union(*(word[0] + word[0].upper() for word in SURE))
_FIRST = re.compile(
    rf"(?ai:[\s*_`~]{{0,32}}({'|'.join(map(re.escape, SURE))})[*_`~]{{0,8}}[ \t]*"
    "[-.,:;!\N{EN DASH}\N{EM DASH}]{1,8}[*_`~]{0,8}[ \t]+(?=\\S))"
)

_CLOTHES = re.compile(r"</?[a-z][a-z0-9]{0,15}(?: [^<>\n]{0,80})?/?>|\\", re.IGNORECASE)
_WELL = r"heartbeat_ok(?![^\W_])"
_DRESSED = re.compile(
    rf"^[\W_]*{_WELL}(?=[^\S\n]*[^\w\s]|\s*$)|(?<![^\W_]){_WELL}[\W_]*$"
    r"|\A[\W_]*heartbeat[\W_]*ok[\W_]*\Z",
    re.MULTILINE,
)


def plain(word: str) -> str:
    """Give a control word as it is known: without brackets, large."""
    return word.strip("[]").upper()


def word_of(token: str) -> str | None:
    """Give the control word that a token is, whatever stands around it."""
    core = token.strip(FORMATTING).lower()
    return core if core in _SURE else None


def says_well(text: str) -> bool:
    r"""Whether a text says `HEARTBEAT_OK` in clothes that no word here may wear.

    As `<b>HEARTBEAT_OK</b>`, `HEARTBEAT\_OK`, `Heartbeat OK`, with a check mark behind
    it, in letters of another width. For answers to a heartbeat only, and for a whole
    text: in others, a word so dressed is what they are about.
    """
    bare = unicodedata.normalize("NFKC", _CLOTHES.sub("", text[:MOST_DRESSED]))
    letters = (x for x in bare if unicodedata.category(x) != "Cf")
    return _DRESSED.search("".join(letters).lower()) is not None


def may_become_one(token: str) -> bool:
    """Whether more letters could make a control word of this, which is not empty."""
    if token[0] not in _FIRSTS:
        return False
    core = token.strip(FORMATTING).lower()
    return not core or core in _BEGINNINGS


def all_of(line: str) -> tuple[str, ...]:
    """Give the control words of a line that holds nothing else; else nothing."""
    tokens = [token for token in line.split() if token.strip(FORMATTING)]
    words = [word_of(token) for token in tokens[:9]]
    if len(tokens) > 8 or None in words:
        return ()
    return tuple(word for word in words if word)


def unsure_of(line: str) -> str | None:
    """Give the word that a line is, if it is one that people write, too."""
    core = line.strip().strip(FORMATTING).strip()
    return core if core in UNSURE else None


def first_of(line: str) -> tuple[str, int] | None:
    """Give the control word before a line's own words, and where those begin."""
    found = _FIRST.match(line)
    return (found[1].lower(), found.end()) if found else None


def last_of(line: str, *, is_fresh: bool) -> tuple[tuple[str, ...], int]:
    """Find the control words that end a line.

    Args:
        line: without its line break.
        is_fresh: whether a word may begin with its first character.

    Returns:
        The words, the last one first, and where they begin.
    """
    cut, end, words = len(line), len(line), list[str]()
    while len(words) < 8 and (found := _token_before(line, end, is_fresh=is_fresh)):
        start, stop = found
        token = line[start:stop]
        if word := word_of(token):
            words.append(word)
            cut = start
        elif token.strip(FORMATTING):
            break
        end = start
    return tuple(words), cut


def held_from(line: str, *, is_fresh: bool) -> int:
    """Find where the words begin that may turn out to end the line.

    Args:
        line: what there is of it, without what was shown before.
        is_fresh: whether a word may begin with its first character.
    """
    found = _token_before(line, len(line), is_fresh=is_fresh)
    if found is None or not may_become_one(line[found[0] : found[1]]):
        return len(line)
    hold = end = found[0]
    while found := _token_before(line, end, is_fresh=is_fresh):
        token = line[found[0] : found[1]]
        if word_of(token):
            hold = found[0]
        elif token.strip(FORMATTING):
            break
        end = found[0]
    return hold


def _token_before(line: str, end: int, *, is_fresh: bool) -> tuple[int, int] | None:
    low = max(0, len(line) - TAIL)
    stop = low + len(line[low:end].rstrip(BLANKS))
    if stop <= low:
        return None
    start = max(line.rfind(blank, low, stop) for blank in BLANKS) + 1
    # Why below and not up to: a line that is whole, and one that was shown up to here,
    # must agree.
    is_near = len(line) - start < TAIL
    return (start, stop) if is_near and (start > 0 or is_fresh) else None
