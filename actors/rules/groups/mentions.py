"""Mentions: which agents a person's message calls, by `@name` or by its name. Pure.

Mentions that the platform itself reports are in `Inbound.mentions`; `activation.py`
joins both. `addressing.py` reads whom an agent's own answer calls.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping

from actors.rules.text.similarity import fold

# A name begins after a non-word character, so that the @ of a mail address is no
# mention, and consists of letters, digits, _ and -.
# What follows may be a mark, which no `\w` is, on the name's last letter.
_MENTION = re.compile(r"(?<!\w)@([\w-]+)(?=([^\x00-\u02ff])?)")

_ONE_WORD = re.compile(r"[\w-]+")

LONGEST_NAME = 64
"""Characters of what an agent may be called."""

# Telegram's clients write a command for one of several bots so: `/help@anna`.
_COMMANDED = re.compile(r"/[A-Za-z][\w-]*@([\w-]+)(?=\s|\Z)")

# What comes before a name that is called: chosen from what people begin with in the
# languages that the runtime speaks.
_GREETING = re.compile(
    r"(?:hey|hi|hello|hallo|hola|ciao|salut|bonjour|moin|servus|yo|ok|okay|dear|thanks"
    r"|thank you|danke|gracias|merci|bitte|please|por favor|good (?:morning|evening)"
    r"|guten (?:morgen|tag|abend)|buenos d[ií]as|buenas(?: tardes| noches)?|oye|und|and"
    r"|y|coucou|bonsoir|s'il te pla[iî]t|s'il vous pla[iî]t|et|ol[aá]|oi|bom dia"
    r"|boa (?:tarde|noite)|obrigad[oa]|e|안녕(?:하세요|하십니까)?|저기(?:요)?|여보세요"
    r"|고마워(?:요)?|감사합니다)\s*[,!]?\s+"
)
# In Korean a name that is called ends with a particle or a title. The marks beyond
# ASCII are the wide ones of Chinese and Japanese, and dashes.
_AFTER_NAME = re.compile(
    r"[야아]\s|[야아님씨]?\s*"
    r"(?:[,:;!?\u2026\uff0c\u3001\uff1a\uff01\uff1f]|\.(?:\s|\Z)"
    r"|[-\u2013\u2014]\s|\Z)"
)
_END = " \t\r\n.!?\u2026\u3002\uff01\uff1f)"
_AND = r"(?:and|und|y|et|e|or|oder|o|ou|u)\s+"
_JOINED = (
    rf"(?:\s*(?P<comma>[,\uff0c\u3001])\s*(?P<also>{_AND})?"
    rf"|\s*[&+/]\s*|\s+{_AND}|(?:와|과|하고|이랑|랑)\s+)"
)
_JOIN = re.compile(_JOINED)
_JOIN_BEFORE = re.compile(rf"{_JOINED}\Z")
"""What stands between the names of several who are called together."""

LONGEST_JOIN = 16
"""Characters before a name in which it is looked for."""

MOST_GREETINGS = 2
MOST_CALLED = 16
"""Names that are called together; a message may be all names."""

LONGEST_BEGINNING, LONGEST_END = 1_000, 200
"""Characters of a message's beginning and end in which names are looked for."""


def mentioned(text: str, agents: Mapping[str, str]) -> tuple[str, ...]:
    """Return the known agents that a person's text mentions, in its order, each once.

    Args:
        agents: names of the agents by all that they are called, case-folded.
    """
    if "@" not in text:
        return ()
    commanded = _COMMANDED.match(text)
    return named([commanded] if commanded else _MENTION.finditer(text), agents)


def named(
    mentions: Iterable[re.Match[str]], agents: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the known agents that mentions name, in their order, each once.

    Args:
        mentions: matches whose first group is the word after an @; a second one is what
            follows it, if that may be a mark.
        agents: names of the agents by all that they are called, case-folded; of those
            that begin alike the longest counts.
    """
    found: dict[str, None] = {}
    of_words = sorted((x for x in agents if not _ONE_WORD.fullmatch(x)), key=len)[::-1]
    for match in mentions:
        is_cut = match.lastindex == 2
        names = sorted(agents, key=len)[::-1] if is_cut else of_words
        word = named_at(match.start(1), match.string, names) if names else ""
        if not word and not is_cut:
            word = match[1].casefold()
        # A dash after a name ends a clause more often than it belongs to a name.
        agent = agents.get(word) or agents.get(word.rstrip("-"))
        if agent is not None:
            found[agent] = None
    return tuple(found)


def named_at(begin: int, text: str, names: Iterable[str]) -> str:
    """Give the first of the names with which a place of a text begins; empty: none."""
    rest = fold(text[begin : begin + LONGEST_NAME + 1])
    begins = (x for x in names if rest.startswith(x))
    return next((x for x in begins if not goes_on(rest[len(x) :])), "")


def goes_on(rest: str) -> bool:
    """Tell whether a word goes on, if only with a mark on its last letter."""
    return rest[:1].isalnum() or unicodedata.category(rest[:1] or " ")[0] == "M"


def hailed(text: str, names: Collection[str]) -> frozenset[str]:
    """Find who is called by the bare name, at the text's beginning or end.

    "anna, …", "Anna?", "Hey anna …", "…, anna" and "anna and ben, …" call somebody;
    "Anna is ill" does not.

    Args:
        names: whatever somebody may be called, likewise.
    """
    return frozenset((*_first_called(text, names), *_last_called(text, names)))


def _first_called(text: str, names: Collection[str]) -> list[str]:
    rest, is_greeted = text.strip()[:LONGEST_BEGINNING].lstrip("¿¡\"'(*_"), False
    for _ in range(MOST_GREETINGS):
        greeting = _GREETING.match(rest)
        if greeting is not None:
            rest, is_greeted = rest[greeting.end() :], True
    called: list[str] = []
    found: list[str] = []
    while name := max(filter(rest.startswith, names), key=len, default=""):
        found.append(name)
        rest = rest[len(name) :]
        if _AFTER_NAME.match(rest) or (is_greeted and rest[:1].isspace()):
            called = [*found]
        join = _JOIN.match(rest)
        if join is None or len(found) == MOST_CALLED:
            break
        if join["comma"] and not join["also"]:
            is_greeted = False  # what comes may be the subject of a sentence
        rest = rest[join.end() :]
    return called


def _last_called(text: str, names: Collection[str]) -> list[str]:
    rest = text[-LONGEST_END:].rstrip(_END)
    called: list[str] = []
    found: list[str] = []
    while name := max(filter(rest.endswith, names), key=len, default=""):
        found.append(name)
        rest = rest.removesuffix(name)
        join = _JOIN_BEFORE.search(rest, max(0, len(rest) - LONGEST_JOIN))
        if join is None or len(found) == MOST_CALLED:
            break
        if join["comma"]:
            called = [*found]
        rest = rest[: join.start()]
    return called
