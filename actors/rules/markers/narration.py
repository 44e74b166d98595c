"""Lines in which a model says what it is about to look up; pure.

"Let me check…", "Ich schaue kurz nach.", "Buscando el archivo…". A pattern must fit a
whole line, and a short one: somebody announces to look something up, or names it and
trails off.
"""

from __future__ import annotations

import re
from functools import cache

MOST = 200
"""Characters of such a line."""

_ANNOUNCED: tuple[tuple[str, str, str], ...] = (
    # Who does it; what may stand between; what is done.
    (
        "let me|let's|i'll|i will|i'm going to|i am going to|i need to",
        "just|now|quickly|first|also",
        (
            "check|look|fetch|search|find|see what|get the|read|query|pull up|verify"
            "|use the|retrieve|browse|call the|run the|open the|take a look"
        ),
    ),
    (
        "lass mich|lassen sie mich|ich werde",
        "das|mir|jetzt|kurz|mal|eben|nun|es|schnell",
        "prüfen|nachsehen|nachschauen|suchen|abrufen|holen|lesen|recherchieren",
    ),
    ("ich schaue|ich sehe|ich frage", "das|mir|jetzt|kurz|mal|eben|nun", "nach"),
    (
        "déjame|permíteme|voy a|vamos a",
        "ahora|primero",
        "buscar|revisar|consultar|comprobar|verificar|ver|mirar|obtener|leer",
    ),
    (
        "laissez-moi|laisse-moi|je vais",
        "maintenant|d'abord",
        "chercher|vérifier|regarder|consulter|rechercher|récupérer|lire|voir",
    ),
    (
        "fammi|lasciami|vado a|ora",
        "subito|prima",
        (
            "cercare|controllare|verificare|guardare|vedere|recuperare|leggere|controllo"
            "|verifico|cerco"
        ),
    ),
    (
        "deixe-me|deixa-me|deixa eu|vou|permita-me",
        "agora|primeiro",
        "buscar|procurar|pesquisar|verificar|consultar|checar|ver|obter|ler",
    ),
    (
        "laat me|laat mij|ik ga|ik zal",
        "even|dit|het|dat|eerst",
        "kijken|zoeken|controleren|opzoeken|nakijken|ophalen|lezen|checken",
    ),
    (
        "сейчас|давайте|дайте|позвольте",
        "мне|я",
        "проверю|посмотрю|поищу|найду|проверить|посмотреть|поискать|узнаю",
    ),
)
_TRAILING = (
    "searching|checking|fetching|looking up|looking for|looking into|retrieving|loading"
    "|querying|reading|browsing|calling|running"
    "|suche|prüfe|rufe|lade|lese|ich suche|ich prüfe|ich rufe|ich lade|ich lese"
    "|buscando|consultando|revisando|verificando|comprobando"
    "|je cherche|recherche|vérification|consultation"
    "|cercando|controllo|sto cercando|verifico"
    "|procurando|pesquisando|zoeken|ophalen|controleren"
    "|ищу|проверяю|ищем|поиск|загружаю"
)
_OPENING = "ok|okay|sure|alright|now|gut|klar|bien|bene|хорошо"
_ANNOUNCING = "|".join(
    f"(?:{who})(?: (?:{between})){{0,3}} (?:{does})"
    for who, between, does in _ANNOUNCED
)
_FIRST_WORDS = frozenset(
    each.split(maxsplit=1)[0]
    for table in (_OPENING, _TRAILING, *(who for who, _, _ in _ANNOUNCED))
    for each in table.split("|")
)
_BEGINNINGS = frozenset(
    word[:length] for word in _FIRST_WORDS for length in range(1, len(word) + 1)
)
_FORMATTING = "*_ \t"
_ENDS = ",.!…\r"


@cache
def _line() -> re.Pattern[str]:
    """Match such a line; made when it is needed, which it is not where it is shown."""
    return re.compile(
        rf"(?i:(?:(?:{_OPENING})[,.!]? )?"
        rf"(?:(?:{_ANNOUNCING})\b[^.!?\n]{{0,120}}(?:\.{{1,3}}|…|:|!)?"
        rf"|(?:{_TRAILING})\b[^.!?\n]{{0,120}}(?:\.\.\.|…)))"
    )


def may_be(head: str) -> bool | None:
    """Whether a line that begins so may be one, by its first word; None: unclear."""
    core = _straight(head.lstrip(_FORMATTING).lower())
    first, blank, _ = core.partition(" ")
    bare = first.rstrip(_ENDS)
    if blank or bare != first:
        return bare in _FIRST_WORDS
    return None if not bare or bare in _BEGINNINGS else False


def is_narration(line: str) -> bool:
    """Whether a whole line says nothing but what is about to be looked up."""
    if len(line) > MOST:
        return False
    return _line().fullmatch(_straight(line.strip().strip(_FORMATTING))) is not None


def _straight(text: str) -> str:
    return text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
