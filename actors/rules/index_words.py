"""The words by which a text is found again, and those of a question.

Pure. Case, accents and width do not count. Words that Spanish and English sentences
are held together by are left out; scripts without blanks between their words (Han,
kana, Thai, …) are cut into overlapping pairs. What is given is what
`runtime.facts.WORD` takes for a word.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import islice

MOST_OF_FACT = 400
"""Words by which one text is found; what comes behind them is not indexed."""

MOST_OF_QUESTION = 24
"""Words of a question that are looked up: the longest, which say most."""

LONGEST_WORD = 32
SHORTEST_WORD = 2
"""Characters; a single letter or digit is the beginning of too much."""

LONGEST_TEXT = 20_000
"""Characters of a text that are looked at."""

GROUP_PREFIX = re.compile(r"\s*\[[^\[\]\n]{1,100}\]:\s*")
"""Who speaks, before what is said in a group (F154)."""

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
    """Give a text without case, accents and other differences that do not count."""
    # Why folded after it, too: what a letter is made of may be a capital.
    parts = unicodedata.normalize("NFKD", text[:LONGEST_TEXT].casefold()).casefold()
    return "".join(c for c in parts if not unicodedata.combining(c))


def words_of(text: str) -> tuple[str, ...]:
    """Give the words by which a text is found, in their order, repeated ones too."""
    return tuple(islice(_words(text), MOST_OF_FACT))


def question_words(text: str) -> tuple[str, ...]:
    """Give the words of a question, each once, the longest first."""
    found = dict.fromkeys(islice(_words(text), MOST_OF_FACT))
    return tuple(sorted(found, key=lambda word: -len(word))[:MOST_OF_QUESTION])


def without_speaker(text: str) -> str:
    """Take off who speaks, as group chats have it before each message (F154)."""
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
