"""Tells whether words try to change an agent's instructions; pure.

A list of phrases, in the languages that people of this company write most. It sees
what is meant for a model and hidden from people: characters without width are left
out, spaces are one, letters are in one case and of one kind.

Not done: more than phrases. Whoever wants to can say it in other words; what keeps
them from doing harm is what an agent may do with its tools.
"""

from __future__ import annotations

import re
import unicodedata

_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e01ef]"
)

_ORDERS = (
    r"(?:instructions?|prompts?|rules|directions|directives|orders|guidelines"
    r"|programming|restrictions)"
)
_EARLIER = r"(?:previous|prior|above|earlier|preceding|foregoing|original|initial)"
_ALL = r"(?:(?:all|any|every|everything|of|the|your|my|these|those|other) ){0,4}"

_ENGLISH = (
    "ignore",
    "disregard",
    "forget",
    "overlook",
    "skip",
    "drop",
    "discard",
    "overr",
)
_GERMAN = ("anweisungen", "instruktionen", "regeln", "vorgaben", "befehle")

PHRASES: tuple[tuple[tuple[str, ...], str], ...] = (
    # English
    (
        _ENGLISH,
        (
            rf"\b(?:ignore|disregard|forget|overlook|skip|drop) {_ALL}{_EARLIER}"
            rf"(?: \w+){{0,1}}? {_ORDERS}\b"
        ),
    ),
    (
        _ENGLISH,
        (
            rf"\b(?:ignore|disregard|forget|override|overwrite|discard) {_ALL}"
            rf"(?:system |safety |hidden |current )?{_ORDERS}"
            r" (?:above|before|so far|you (?:were|have been) given)\b"
        ),
    ),
    (_ENGLISH, rf"\b(?:forget|disregard) (?:all )?(?:of )?your {_ORDERS}\b"),
    (
        ("bypass", "overr", "overwr", "disable"),
        (
            rf"\b(?:bypass|override|overwrite|disable) {_ALL}(?:system|safety|content) "
            r"(?:prompts?|instructions?|rules|filters?|restrictions|guidelines"
            r"|checks)\b"
        ),
    ),
    (
        ("follow", "obey"),
        (
            rf"\b(?:do not|don't|stop) (?:follow|obey)(?:ing)? {_ALL}(?:system "
            rf"|previous )?"
            rf"{_ORDERS}\b"
        ),
    ),
    (
        ("you are ",),
        (
            r"\byou are (?:now|no longer) (?:in )?(?:dan\b|developer mode|god mode"
            r"|jailbroken|unrestricted|unfiltered|bound by)"
        ),
    ),
    (
        (" mode",),
        (
            r"\b(?:enable|enter|activate|switch to) (?:developer|god|dan|jailbreak"
            r"|debug"
            r"|admin) mode\b"
        ),
    ),
    (
        ("you ha",),
        rf"\b(?:pretend|act as if|imagine)(?: that)? you (?:have|had) no {_ORDERS}\b",
    ),
    (
        ("instruction", "prompt"),
        r"\b(?:new|updated|real) system (?:instructions?|prompt)\b ?:",
    ),
    (("override",), r"\bsystem (?:prompt )?override\b"),
    (
        ("from now on",),
        (
            r"\bfrom now on,? (?:you (?:will |must |should )?)?"
            r"(?:ignore|disregard|have no)\b"
        ),
    ),
    (
        ("instruction", "prompt"),
        (
            r"\b(?:reveal|show|print|repeat|output|display|tell)(?: me)?(?:"
            r" all)?(?: of)?"
            r" your (?:system|hidden|initial|secret|original) (?:prompt"
            r"|instructions?)\b"
        ),
    ),
    (
        (" above",),
        r"\brepeat (?:everything|all|the (?:text|words)) above\b",
    ),
    (
        ("developer", "creator", "administrator"),
        (
            r"\bi(?:'m| am) (?:your|the) (?:developer|creator"
            r"|administrator)\b[^.]{0,40}"
            rf"\b(?:ignore|override|disable) {_ALL}{_ORDERS}\b"
        ),
    ),
    # Spanish
    (
        ("instrucciones", "reglas", "indicaciones", "ordenes", "órdenes"),
        (
            r"\b(?:ignora|ignore|olvida|olvide|descarta|omite) "
            r"(?:(?:todas?|las|tus|sus) ){0,3}(?:instrucciones|reglas|indicaciones"
            r"|ordenes"
            r"|órdenes) (?:anteriores|previas|de arriba)\b"
        ),
    ),
    (
        ("sistema",),
        (
            r"\b(?:muestra|muestrame|muéstrame|revela|dime) (?:me )?(?:tu|tus|el|las) "
            r"(?:prompt|instrucciones) (?:del|de) sistema\b"
        ),
    ),
    # German
    (
        _GERMAN,
        (
            r"\b(?:ignorier|ignoriere|ignorieren sie|vergiss|vergessen sie|missachte"
            r"|übergehe) (?:(?:alle|deine|ihre|die) ){0,3}(?:vorherigen|bisherigen"
            r"|vorigen"
            r"|obigen|früheren|ursprünglichen) (?:anweisungen|instruktionen|regeln"
            r"|vorgaben"
            r"|befehle)\b"
        ),
    ),
    (
        _GERMAN,
        (
            r"\b(?:vergiss|missachte|ignoriere) (?:alle? )?deine (?:anweisungen"
            r"|instruktionen|regeln|vorgaben)\b"
        ),
    ),
    (
        ("prompt", "anweisungen"),
        (
            r"\b(?:zeig|zeige|verrate|nenne)(?: mir)? (?:deinen? |den )"
            r"(?:system-?prompt|geheimen anweisungen)\b"
        ),
    ),
    # French, Italian, Portuguese, Russian
    (
        ("instructions", "consignes", "règles"),
        (
            r"\b(?:ignore|ignorez|oublie|oubliez) (?:toutes )?(?:les |tes |vos )?"
            r"(?:instructions|consignes|règles) (?:précédentes|antérieures|ci-dessus)"
        ),
    ),
    (
        ("istruzioni", "regole"),
        (
            r"\b(?:ignora|dimentica) (?:tutte )?(?:(?:le|tue) ){0,2}(?:istruzioni"
            r"|regole) "
            r"(?:precedenti|sopra)\b"
        ),
    ),
    (
        ("instruções", "regras"),
        (
            r"\b(?:ignore|esqueça|esquece) (?:todas )?(?:(?:as|suas) ){0,2}"
            r"(?:instruções|regras) (?:anteriores|acima)\b"
        ),
    ),
    (
        ("инструкц", "указан", "правила"),
        (
            r"\b(?:игнорируй|забудь|игнорируйте|забудьте)(?: (?:все|свои|твои)){0,2} "
            r"(?:предыдущие|прежние|прошлые) (?:инструкции|указания|правила)"
        ),
    ),
    # Korean, Japanese, Chinese: there are hardly any spaces to go by
    (
        ("무시", "잊어"),
        (
            r"(?:이전|위의?|앞의?|기존)\s?(?:모든\s?)?(?:지시|명령|지침|규칙|프롬프트)"
            r"(?:사항)?(?:들)?(?:을|를|은|는)?\s?(?:모두\s?|전부\s?|다\s?)?(?:무시"
            r"|잊어)"
        ),
    ),
    (("시스템",), r"시스템\s?프롬프트(?:를|을)?\s?(?:보여|알려|출력|공개)"),
    (
        ("無視", "忘れ"),
        (
            r"(?:以前|前|上記|これまで|今まで)の(?:すべての|全ての)?"
            r"(?:指示|命令|ルール|プロンプト)(?:を|は)?(?:すべて|全て|全部)?(?:無視"
            r"|忘れ)"
        ),
    ),
    (
        ("忽略", "无视", "無視", "忘记", "忘記", "忘掉"),
        (
            r"(?:忽略|无视|無視|忘记|忘記|忘掉)(?:你)?(?:之前|以上|前面|先前|上面"
            r"|此前)?(?:的)?"
            r"(?:所有|全部|一切)?(?:之前|以上|前面|先前|上面)?(?:的)?"
            r"(?:指令|指示|提示词|提示詞|规则|規則)"
        ),
    ),
)
"""Texts of which one must be there at all, then a regular expression; both of a text
made `plain`. The first are found a hundred times as fast."""

_COMPILED = tuple((needs, re.compile(phrase)) for needs, phrase in PHRASES)


def plain(text: str) -> str:
    """Make texts equal that a model would read as the same."""
    if text.isascii():
        return " ".join(text.lower().split())
    folded = unicodedata.normalize("NFKC", _HIDDEN.sub("", text)).casefold()
    folded = folded.replace("\u2019", "'")
    return " ".join(unicodedata.normalize("NFKC", folded).split())


def tries_to_override(text: str) -> bool:
    """Tell whether a text holds a phrase that is to change instructions."""
    words = plain(text)
    return any(
        phrase.search(words) is not None
        for needs, phrase in _COMPILED
        if any(each in words for each in needs)
    )
