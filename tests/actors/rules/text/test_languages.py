"""Proves which language is recognised, and that little evidence decides nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from actors.rules.text.languages import (
    ENGLISH_NAMES,
    NAMES,
    added,
    code_of,
    decide,
    points,
)

SAID = [
    ("en", "Hello, can you tell me what the weather is like today?"),
    ("en", "I'd like to know where the files are, please. Thanks!"),
    ("de", "Hallo, kannst du mir bitte sagen, wie das Wetter heute ist?"),
    ("de", "Ich habe eine Frage zu meinem Vertrag und möchte ihn kündigen."),
    ("es", "Hola, ¿puedes decirme qué tiempo hace hoy en Madrid?"),
    ("es", "Necesito ayuda con mi pedido porque todavía no ha llegado."),
    ("fr", "Bonjour, peux-tu me dire quel temps il fait aujourd'hui à Paris ?"),
    ("fr", "J’ai une question sur ma commande, elle n’est pas encore arrivée."),
    ("pt", "Olá, você pode me dizer como está o tempo hoje em Lisboa?"),
    ("it", "Ciao, puoi dirmi che tempo fa oggi a Roma per favore?"),
    ("ru", "Привет, скажи пожалуйста, какая сегодня погода"),
    ("ja", "こんにちは、今日の天気はどうですか"),
    ("zh", "你好，今天天气怎么样"),
    ("ko", "안녕하세요 오늘 날씨 어때요"),
]


@pytest.mark.parametrize(("code", "text"), SAID)
def test_a_sentence_is_enough(code: str, text: str) -> None:
    assert decide(points(text)) == code


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ok",
        "hola",
        "danke!",
        "はい",
        "Anna?",
        "12345 + 678",
        "https://es.wikipedia.org/wiki/el_los_las_una_pero_que",
        "```\nif not (this or that): return here\n```",
        "Привіт, як справи сьогодні",  # Ukrainian
    ],
)
def test_little_or_nothing_decides_nothing(text: str) -> None:
    assert decide(points(text)) == ""


@given(st.text(max_size=3000))
def test_any_text_has_points_or_none(text: str) -> None:
    counted = points(text)
    assert set(counted) <= set(NAMES)
    assert all(count > 0 for count in counted.values())
    assert decide(counted) in {"", *NAMES}


COUNTS = st.dictionaries(st.sampled_from(sorted(NAMES)), st.integers(1, 50))


@given(COUNTS)
def test_what_is_decided_leads_clearly(counted: dict[str, int]) -> None:
    code = decide(counted)
    others = [count for each, count in counted.items() if each != code]
    if code:
        assert all(counted[code] >= 2 * count for count in others)


@given(COUNTS, COUNTS, COUNTS)
def test_the_order_of_messages_does_not_matter(
    one: dict[str, int], two: dict[str, int], three: dict[str, int]
) -> None:
    assert added(added(one, two), three) == added(one, added(three, two))


def test_short_messages_add_up() -> None:
    counted: dict[str, int] = {}
    for text in ("hola", "necesito ayuda", "por favor", "gracias"):
        counted = added(counted, points(text))
    assert decide(counted) == "es"


@pytest.mark.parametrize(
    ("word", "code"),
    [("de", "de"), ("DE-at", "de"), ("German", "de"), ("deutsch", "de"), ("xx", "")],
)
def test_a_language_is_known_by_code_or_name(word: str, code: str) -> None:
    assert code_of(word) == code


def test_every_language_is_named_twice() -> None:
    assert set(NAMES) == set(ENGLISH_NAMES)
