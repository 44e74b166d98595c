"""Proves that the page says everything in every language, and writes as it should."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.web.page import request, words
from connectors.web.page.views import (
    all_views,
    base,
    overview,
    people,
    queue,
    usage,
)
from connectors.web.page.words import PageLook, Words, read_words, wanted
from tests.fakes.web.page import ANNA, form_of, open_page

LANGUAGES = ("de", "es", "fr", "ko", "pt")
FIELD = re.compile(r"\{(\w+)\}")
SAID = re.compile(r'\b_\(\s*"((?:[^"\\]|\\.)*)"')
BUILT = ("day", "agent", "sender", "model", "account")


def strings(module: object, *keys: str) -> set[str]:
    """Give the texts that a module's calls pass under one of these names."""
    path = Path(str(getattr(module, "__file__", "")))
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        each.value.value
        for each in ast.walk(tree)
        if isinstance(each, ast.keyword)
        and each.arg in keys
        and isinstance(each.value, ast.Constant)
        and isinstance(each.value.value, str)
        and each.value.value
    }


def answers() -> set[str]:
    """Give what actions answer, and why they refuse."""
    folder = Path(str(base.__file__)).parent
    trees = [ast.parse(x.read_text(encoding="utf-8")) for x in folder.glob("*.py")]
    found = {
        call.args[0].value
        for tree in trees
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and ast.unparse(call.func) == "asked.say"
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
    }
    assert len(found) > 10
    shared = {base.NOBODY_THERE, base.NOT_KNOWN, overview.DECIDED}
    return found | shared | {*people.OUTCOMES.values()}


def said() -> set[str]:
    """Give all that templates and views say, in English."""
    found = {
        text
        for each in request.FOLDER.glob("*.html")
        for text in SAID.findall(each.read_text(encoding="utf-8"))
    }
    found -= {"by "}
    found |= {f"by {each}" for each in BUILT}
    found |= {each.title for each in all_views()}
    found |= {text for text, _ in words.STATES.values()}
    found |= answers()
    found |= {*queue.REASONS.values(), queue.OVER, "never"}
    found |= {unit for _, unit in words.UNITS} | {*usage.LIMITS.values()}
    for module in (overview, queue):
        found |= strings(module, "text", "label", "first", "second")
    return found - {"{reason}", "{state}", "/stop all"}


CATALOGUES = read_words()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_is_translated_with_what_is_filled_in(language: str) -> None:
    texts = CATALOGUES[language]._texts
    assert said() - set(texts) == set()
    for english, told in texts.items():
        assert set(FIELD.findall(english)) == set(FIELD.findall(told)), english


def test_no_translation_is_of_a_text_that_nobody_says() -> None:
    own = {"Actor", "month", "the process ended in the middle of it"}
    titles = {"Messages", "Time to answer", "Dollars", "Tokens", "Failed answers"}
    titles |= {"Longest wait in the queue", "Event loop lag"}
    periods = {"1 day", "7 days", "30 days", "day"}
    steps = {text for _, text in queue.STEPS.values()}
    known = said() | own | titles | periods | steps | {"its receipt is not genuine"}
    assert set(CATALOGUES["de"]._texts) - known == set()


async def test_a_browser_is_shown_its_own_language_or_the_chosen_one() -> None:
    async with open_page() as bed:
        german = {"accept-language": "de-AT,de;q=0.9,en;q=0.8"}
        html = (await bed.client.get(ANNA, headers=german)).text
        assert '<html lang="de"' in html
        assert "Senden" in html
        form = form_of(html, 'id="look-form"')
        chosen = form | {"theme": "dark", "language": "fr", "zone": "utc"}
        done = await bed.client.post("/look", data=chosen)
        assert done.headers["location"] == f"{ANNA}?zone=utc"
        html = (await bed.client.get(ANNA, headers=german)).text
        assert '<html lang="fr" data-theme="dark" data-zone="utc"' in html
        assert "Envoyer" in html


async def test_an_address_says_in_which_zone_it_is_read() -> None:
    async with open_page() as bed:
        assert 'data-zone="here"' in (await bed.client.get(ANNA)).text
        assert 'data-zone="here"' in (await bed.client.get(f"{ANNA}?zone=x")).text
        html = (await bed.client.get(f"{ANNA}?zone=utc")).text
        assert 'data-zone="utc"' in html
        form = form_of(html, 'id="look-form"')
        back = {"back": f"{ANNA}?find=a+b&zone=utc", "zone": "here"}
        done = await bed.client.post("/look", data=form | back)
        assert done.headers["location"] == f"{ANNA}?find=a+b"


@pytest.mark.parametrize("back", ["//evil.example", "/\\evil.example", "https://x", ""])
async def test_a_choice_leads_nowhere_else(back: str) -> None:
    async with open_page() as bed:
        form = form_of((await bed.client.get(ANNA)).text, 'id="look-form"')
        done = await bed.client.post("/look", data=form | {"back": back})
        assert done.headers["location"] == "/"


@given(st.text(max_size=60))
def test_any_cookie_is_read_as_something_the_page_can_look_like(text: str) -> None:
    look = PageLook.read(text)
    assert PageLook.read(look.text) == look


@given(st.text(max_size=60))
def test_any_wish_of_a_browser_is_a_language_there_is(accept: str) -> None:
    assert wanted(accept, CATALOGUES) in CATALOGUES


def test_numbers_and_dates_are_written_as_in_each_language() -> None:
    german, french, english = (Words(each) for each in ("de", "fr", "en"))
    assert german.money(1234.5) == "$1.234,50"
    assert french.decimal(1234.5) == "1\u202f234,5"
    assert english.money(0.0042) == "$0.0042"
    assert english.brief(0.34) == "340 ms"
    assert english.brief(2.44) == "2.4 s"
    assert english.brief(300) == "5 min"
    assert french.when("1970-01-02T01:00:00+01:00") == "02/01/1970 00:00:00 UTC"
