"""Similarity of texts: duplicate facts, index words, similar tasks, misspelt names.

Pure.

Two facts are duplicates if they share at least 70 % of their words, or if fewer than 15
% of the longer text's characters differ. Texts with different numbers, or of which only
one contains a negation, are never duplicates.

Index words are the words by which a text is found, and the words of a question.

They ignore case, accents and width. Function words of Spanish and English are left out.
Scripts without spaces between words (Han, kana, Thai, …) are split into overlapping
pairs of characters. All index words match `runtime.store.facts.WORD`.

Tasks are similar if they share half of their words.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

from actors.rules.text.languages import FREQUENT_WORDS

MOST_OF_FACT = 400
"""Most indexed words of one text."""

MOST_OF_QUESTION = 24
"""Most words of a question that are looked up; the longest, as the most telling
ones.
"""

LONGEST_WORD = 32
SHORTEST_WORD = 2
"""Shortest indexed word in characters; a single letter is the prefix of too many
words.
"""

LONGEST_TEXT = 20_000
"""Most characters of a text that are examined."""

GROUP_PREFIX = re.compile(r"\s*\[[^\[\]\n]{1,100}\]:\s*")
"""Prefix with the sender's name, in messages of a group."""

RUN = re.compile(r"[^\W_]+")
UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff"
    r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)

ENGLISH = """
a about above after again all also am an and any are aren as at be because been before
being below between both but by can cannot could couldn did didn do does doesn doing
don down during each few for from further had hadn has hasn have haven having he her
here hers herself him himself his how i if in into is isn it its itself just ll let me
might more most my myself no nor not now of off on once only or other our ours
ourselves out over own please re s same shan she should shouldn so some such t than
that the their theirs them themselves then there these they this those through to too
under until up us ve very was wasn we were weren what when where which while who whom
why will with won would wouldn you your yours yourself yourselves
"""
SPANISH = """
a al algo algun alguna algunas alguno algunos ante antes aqui asi aun aunque cada como
con contra cual cuales cuando cuanto de del desde donde dos e el ella ellas ellos en
entre era eran eres es esa esas ese eso esos esta estaba estan estar estas este esto
estos estoy fue fueron ha habia han has hasta hay he hemos hoy la las le les lo los mas
me mi mis mucha muchas mucho muchos muy nada ni no nos nosotras nosotros nuestra
nuestras nuestro nuestros o os otra otras otro otros para pero poco por porque que
quien quienes se sea sean ser si sido sin sobre solo son soy su sus suya suyo tambien
tanto te tengo ti tiene tienen toda todas todo todos tu tus un una unas uno unos usted
ustedes va vos vosotras vosotros y ya yo
"""
STOP_WORDS = frozenset(f"{ENGLISH} {SPANISH}".split())


def folded(text: str) -> str:
    """Return a text without case, accents and width."""
    # Why folded after it, too: decomposition may produce capitals.
    parts = unicodedata.normalize("NFKD", text[:LONGEST_TEXT].casefold()).casefold()
    return "".join(c for c in parts if not unicodedata.combining(c))


def words_of(text: str) -> tuple[str, ...]:
    """Return the index words of a text, in order, with repetitions."""
    return tuple(islice(_words(text), MOST_OF_FACT))


def question_words(text: str) -> tuple[str, ...]:
    """Return the words of a question, each once, the longest first."""
    found = dict.fromkeys(islice(_words(text), MOST_OF_FACT))
    return tuple(sorted(found, key=lambda word: -len(word))[:MOST_OF_QUESTION])


def without_speaker(text: str) -> str:
    """Remove the sender's name that group chats put before each message."""
    return GROUP_PREFIX.sub("", text, count=1) if GROUP_PREFIX.match(text) else text


def _words(text: str) -> list[str]:
    found: list[str] = []
    for run in RUN.findall(folded(text)):
        last = 0
        for unspaced in UNSPACED.finditer(run):
            found.append(run[last : unspaced.start()])
            found += _pairs(unspaced[0])
            last = unspaced.end()
        found.append(run[last:])
    return [word[:LONGEST_WORD] for word in found if _is_telling(word)]


def _pairs(run: str) -> list[str]:
    if len(run) == 1:
        return [run]
    return [run[at : at + 2] for at in range(len(run) - 1)]


def _is_telling(word: str) -> bool:
    is_long_enough = len(word) >= SHORTEST_WORD or (word and not word.isascii())
    return bool(is_long_enough) and word not in STOP_WORDS


WORD_OVERLAP = 0.7
"""Share of common words, relative to the text with more of them, for duplicates."""

EDIT_SHARE = 0.15
"""Upper bound of edits for duplicates, as share of the longer text's characters."""

SHORTEST_EDITED = 20
"""Shortest text, in characters, for which edits count; one letter makes *tea* *sea*."""

LONGEST_EDITED = 400
"""Longest text, in characters, for which edits are counted; longer ones compare
words.
"""

NUMBER = re.compile(r"\d+")
NEGATED = """
no not never none nothing nobody without cannot don didn doesn isn aren wasn weren won
wouldn shouldn couldn hasn haven anymore nunca jamas nada nadie sin tampoco ni nao nicht
nie kein keine keinen keiner niemals ohne pas jamais rien sans non mai senza niet nooit
geen zonder не нет никогда без
"""
NEGATIONS = frozenset(NEGATED.split())


def is_alike(first: str, second: str) -> bool:
    """Return whether two facts are duplicates."""
    left, right = (" ".join(RUN.findall(folded(text))) for text in (first, second))
    if left == right:
        return bool(left)
    if not left or not right or _changes(left) != _changes(right):
        return False
    return _shares_words(left, right) or _is_edited(left, right)


def _changes(text: str) -> tuple[Counter[str], bool]:
    words = frozenset(text.split())
    return Counter(NUMBER.findall(text)), bool(words & NEGATIONS)


def _shares_words(left: str, right: str) -> bool:
    # Why without function words: *owns a book on stars* and *… on trees* share four of
    # five words, but only two of the three that matter.
    first, second = Counter(words_of(left)), Counter(words_of(right))
    most = max(first.total(), second.total())
    return bool(most) and (first & second).total() >= WORD_OVERLAP * most


def _is_edited(left: str, right: str) -> bool:
    longer = max(len(left), len(right))
    if not SHORTEST_EDITED <= longer <= LONGEST_EDITED:
        return False
    # Less than: exactly 15 % is too many.
    most = -int(-EDIT_SHARE * longer // 1) - 1
    return edits(left, right, most) <= most


def edits(left: str, right: str, most: int) -> int:
    """Return the Levenshtein distance of two texts.

    Returns:
        `most + 1` if the distance is larger.
    """
    if most < 0 or abs(len(left) - len(right)) > most or _differ(left, right) > most:
        return most + 1
    # Only cells near the diagonal can be within `most`.
    too_many = most + 1
    row = [min(column, too_many) for column in range(len(right) + 1)]
    for at, character in enumerate(left, 1):
        begin, end = max(1, at - most), min(len(right), at + most)
        above, row = row, [too_many] * (len(right) + 1)
        row[0] = min(at, too_many)
        for column in range(begin, end + 1):
            step = above[column - 1] + (character != right[column - 1])
            row[column] = min(step, above[column] + 1, row[column - 1] + 1, too_many)
        if min(row) > most:
            return too_many
    return row[-1]


def _differ(left: str, right: str) -> int:
    """Return a lower bound of the distance, from the counts of characters."""
    first, second = Counter(left), Counter(right)
    return max((first - second).total(), (second - first).total())


ALIKE = 0.5
"""Share of common words from which people are asked whether they mean the same task."""

MOST = 2000
"""Characters looked at."""

_WORD = re.compile(r"\w+")
_SHORT = 3


def are_alike(one: str, other: str) -> bool:
    """Return whether two tasks share at least half of their words."""
    mine, theirs = task_words(one), task_words(other)
    both = mine & theirs
    return len(both) >= ALIKE * len(mine | theirs) > 0


def task_words(text: str) -> frozenset[str]:
    """Return the words that distinguish tasks.

    Short and frequent words are left out if there are others. Scripts without spaces
    between words (Chinese, Japanese) are split into pairs of characters.
    """
    found: set[str] = set()
    for word in _WORD.findall(text[:MOST].casefold()):
        if word[0] >= "\u2e80" and len(word) > 2:
            found.update(word[at : at + 2] for at in range(len(word) - 1))
        else:
            found.add(word)
    long = {each for each in found if len(each) >= _SHORT or each[0] >= "\u2e80"}
    return frozenset(long - FREQUENT_WORDS or long or found)


def fold(text: str) -> str:
    """Normalise and case-fold a text for comparison."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def holds(text: str, word: str) -> bool:
    """Return whether a folded text contains a folded word as a whole word."""
    if not word.strip():
        return False
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        begins = at == 0 or not (goes_on(text[at - 1]) and goes_on(word[0]))
        ends = end == len(text) or not (goes_on(text[end]) and goes_on(word[-1]))
        if begins and ends:
            return True
        at = text.find(word, at + 1)
    return False


def goes_on(character: str) -> bool:
    """Return whether a character continues a word; combining marks do."""
    is_mark = unicodedata.category(character).startswith("M")
    return character.isalnum() or character == "_" or is_mark


# Chosen: names in settings are short, and the time to compare grows with the length of
# a foreign word.
LONGEST_NAME = 64


def near_misses(word: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return at most three known names similar to `word`, the closest first."""
    names = {name.casefold(): name for name in known}
    close = get_close_matches(word[:LONGEST_NAME].casefold(), names)
    return tuple(names[each] for each in close)


def did_you_mean(near: tuple[str, ...], prefix: str = "") -> str:
    """Format suggestions as a sentence with a leading space; empty without any.

    Args:
        near: result of `near_misses`.
        prefix: written before each name, such as `/` before a command.
    """
    if not near:
        return ""
    return f" Did you mean {' or '.join(prefix + name for name in near)}?"
