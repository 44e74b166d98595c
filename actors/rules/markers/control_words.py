"""Control words, with which a model says that it has nothing to say. Pure.

Models wrap them in formatting: `**HEARTBEAT_OK**`, "NO_REPLY.", `[done]`. A control
word counts if it fills or ends a line, or if it begins a line and punctuation follows
(`HEARTBEAT_OK: all quiet`). Inside a sentence it is an ordinary word.
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
"""Words that people never write, in any case."""

UNSURE = ("IGNORE",)
"""Words that people write as well; they count only if the text holds nothing else."""

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
"""Characters that may surround a control word."""

TAIL = 200
"""Characters at the end of a line that are searched for control words."""

BLANKS = " \t\r"

MOST_DRESSED = 2_000
"""Longest text, in characters, that is searched for unusual spellings."""

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
    """Return a control word in canonical form: capitals, without brackets."""
    return word.strip("[]").upper()


def word_of(token: str) -> str | None:
    """Return the control word of a token with formatting around it."""
    core = token.strip(FORMATTING).lower()
    return core if core in _SURE else None


def says_well(text: str) -> bool:
    r"""Return whether a text is `HEARTBEAT_OK` in an unusual spelling.

    Such as `<b>HEARTBEAT_OK</b>`, `HEARTBEAT\_OK`, `Heartbeat OK`, with a check mark,
    or in full-width letters. Only for whole answers to a heartbeat; elsewhere such a
    word is the subject of the text.
    """
    bare = unicodedata.normalize("NFKC", _CLOTHES.sub("", text[:MOST_DRESSED]))
    letters = (x for x in bare if unicodedata.category(x) != "Cf")
    return _DRESSED.search("".join(letters).lower()) is not None


def may_become_one(token: str) -> bool:
    """Return whether a non-empty text could become a control word."""
    if token[0] not in _FIRSTS:
        return False
    core = token.strip(FORMATTING).lower()
    return not core or core in _BEGINNINGS


def all_of(line: str) -> tuple[str, ...]:
    """Return the control words of a line that holds nothing else."""
    tokens = [token for token in line.split() if token.strip(FORMATTING)]
    words = [word_of(token) for token in tokens[:9]]
    if len(tokens) > 8 or None in words:
        return ()
    return tuple(word for word in words if word)


def unsure_of(line: str) -> str | None:
    """Return the control word of a line, if people write that word as well."""
    core = line.strip().strip(FORMATTING).strip()
    return core if core in UNSURE else None


def first_of(line: str) -> tuple[str, int] | None:
    """Return the control word before a line's text, and where the text begins."""
    found = _FIRST.match(line)
    return (found[1].lower(), found.end()) if found else None


def last_of(line: str, *, is_fresh: bool) -> tuple[tuple[str, ...], int]:
    """Return the control words that end a line.

    Args:
        line: the line without its line break.
        is_fresh: whether a word may begin with its first character.

    Returns:
        The words, last one first, and where they begin.
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
    """Return where possible control words at the end of the line begin.

    Args:
        line: the line so far, without the shown part.
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
    start = max([line.rfind(blank, low, stop) for blank in BLANKS]) + 1
    # Why below and not up to: a complete line and one that was shown up to here must
    # agree.
    is_near = len(line) - start < TAIL
    return (start, stop) if is_near and (start > 0 or is_fresh) else None
