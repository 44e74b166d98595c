"""Language detection by script and by frequent small words.

Pure and total. Counts points for each language and decides only with enough of them, so
that one short message never sets or changes the language. Codes are ISO 639-1. Chosen
over a library, because good ones need a hundred megabytes of models or numpy, and only
the language of the runtime's own texts depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

NAMES: dict[str, str] = {
    "de": "Deutsch",
    "en": "English",
    "es": "Español",
    "fr": "Français",
    "it": "Italiano",
    "ja": "日本語",
    "ko": "한국어",
    "pt": "Português",
    "ru": "Русский",
    "zh": "中文",
}
"""Recognised languages, by their own names."""

ENGLISH_NAMES: dict[str, str] = {
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "pt": "Portuguese",
    "ru": "Russian",
    "zh": "Chinese",
}
"""The same by their English names, for models."""

LONGEST_LOOK = 2_000
"""Most characters of a message that are examined."""

ENOUGH = 6
"""Points that a language needs for a decision."""

LEAD = 2
"""Required ratio to the points of the second language."""

# Chosen: words that hardly occur in the other languages. Shared words ("de", "la",
# "no") count for each language and so decide nothing by themselves.
_WORDS: dict[str, str] = {
    "de": (
        "und der die das ist nicht ich du wir ihr sie ein eine einen mit auf für von"
        " zu auch wie was wenn aber oder dass kann kannst bitte danke mir mich dir"
        " dich heute hier noch schon nur sehr habe hast haben sind bin wird werden"
        " warum wo wer mein meine dein es im am den dem des als bei nach hallo guten in"
    ),
    "en": (
        "the and is are not i you we they he she it a an with on for of to also how"
        " what when but or that this can could please thanks my me your today here"
        " still only very have has do does did will would why where who from in at"
        " be was were been there hello let's don't i'm it's need want"
    ),
    "es": (
        "y el la los las es no yo tú nosotros ellos un una con en para de que también"
        " cómo qué cuando cuándo pero o puede puedes por favor gracias mi me tu hoy"
        " aquí todavía sólo solo muy he ha tengo tiene está estoy son soy será dónde"
        " quién del al lo se más hola buenos buenas quiero necesito hay esto eso"
    ),
    "fr": (
        "et le la les est ne pas je tu nous vous ils elles un une avec sur pour de que"
        " aussi comment quoi quand mais ou peut peux s'il plaît merci mon ma mes me"
        " ton aujourd'hui ici encore seulement très ai as avons avez suis sont sera"
        " pourquoi où qui du des au aux ce cette c'est j'ai bonjour salut dans"
    ),
    "it": (
        "e il lo la gli le è non io tu noi voi loro un una con su per di che anche come"
        " cosa quando ma o può puoi favore grazie mio mia mi tuo oggi qui ancora solo"
        " molto ho hai abbiamo sono sei siamo sarà perché dove chi del della dei al"
        " alla in questo questa ciao buongiorno nel nella più voglio"
    ),
    "pt": (
        "e o a os as é não eu você nós eles um uma com em para de que também como quê"
        " quando mas ou pode favor obrigado obrigada meu minha me seu hoje aqui ainda"
        " só muito tenho tem temos são sou está estou será por porquê onde quem do da"
        " dos das ao isso isto olá bom boa mais quero preciso no na"
    ),
}
_LATIN: dict[str, tuple[str, ...]] = {}
for _code, _listed in _WORDS.items():
    for _word in _listed.split():
        _LATIN[_word] = (*_LATIN.get(_word, ()), _code)

FREQUENT_WORDS = frozenset(_LATIN)
"""Words that are in nearly every text of some language, and say nothing of its subject.
"""

_TOKEN = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
# Parts without a language: addresses, code, names of people and commands.
_NOISE = re.compile(r"```.*?```|`[^`]*`|https?://\S+|[@#/]\S+", re.DOTALL)

_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_KANA = re.compile(r"[\u3040-\u30ff]")
_HANGUL = re.compile(r"[\uac00-\ud7a3\u1100-\u11ff\u3130-\u318f]")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]+")

# Letters of other languages that are written in Cyrillic.
_NOT_RUSSIAN = re.compile(r"[іїєґўјљњћђџѓќѕІЇЄҐЎ]")


def points(text: str) -> dict[str, int]:
    """Return the points of each language that has any."""
    words = _NOISE.sub(" ", text[:LONGEST_LOOK])
    found: dict[str, int] = {}
    _count_scripts(words, found)
    for match in _TOKEN.finditer(words):
        said = match[0].casefold().replace("\u2019", "'")
        codes = _LATIN.get(said, ())
        for code in codes:
            # A word of one language alone counts twice.
            found[code] = found.get(code, 0) + (2 if len(codes) == 1 else 1)
    return found


def _count_scripts(words: str, found: dict[str, int]) -> None:
    """Count letters of scripts that only one of the languages uses."""
    kana, han = len(_KANA.findall(words)), len(_HAN.findall(words))
    hangul = len(_HANGUL.findall(words))
    cyrillic = 0 if _NOT_RUSSIAN.search(words) else len(_CYRILLIC.findall(words))
    # Japanese has both; Chinese has no kana.
    counted = {
        "ja": kana + han if kana else 0,
        "zh": 0 if kana else han,
        "ko": hangul,
        "ru": 2 * cyrillic,
    }
    found.update({code: count for code, count in counted.items() if count})


def added(before: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Return the points with those of a further message."""
    return {code: before.get(code, 0) + more.get(code, 0) for code in {*before, *more}}


def decide(counted: Mapping[str, int]) -> str:
    """Return the language with enough points; empty if undecided."""
    if not counted:
        return ""
    order = sorted(counted, key=lambda code: (-counted[code], code))
    best = counted[order[0]]
    second = counted[order[1]] if len(order) > 1 else 0
    is_clear = best >= ENOUGH and best >= LEAD * second
    return order[0] if is_clear else ""


@lru_cache(maxsize=256)
def of_words(words: str) -> str:
    """Return the language of one text by itself; empty if undecided.

    Args:
        words: its first `LONGEST_LOOK` characters; it is asked about several times.
    """
    return decide(points(words))


def code_of(word: str) -> str:
    """Parse a language name: `de`, `German`, `Deutsch`, `de-AT`.

    Returns:
        Its code; empty if it is unknown.
    """
    said = word.strip().casefold()
    short = said.replace("_", "-").partition("-")[0]
    if short in NAMES:
        return short
    for code, name in NAMES.items():
        if said in (name.casefold(), ENGLISH_NAMES[code].casefold()):
            return code
    return ""
