"""Proves that the page says everything in every language, and writes as it should."""

from __future__ import annotations

import ast
import re
from http import HTTPStatus
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, strategies as st

from actors.inbound import connector
from actors.memory.note_rules import CATEGORIES
from actors.operations import warden
from actors.schedule.appointments import Kind
from connectors.admin import conversations, nodes, schedule
from connectors.app import app
from connectors.app.reload import by_hand, rules
from connectors.config import checks
from connectors.config.shipped import shipped_settings
from connectors.web import request as server
from connectors.web.page import logins, request, site, words
from connectors.web.page.chat import files, routes as chats, service
from connectors.web.page.views import all_views, base, overview, people, queue, usage
from connectors.web.page.words import (
    PLACE,
    PageLook,
    Words,
    beginning,
    read_texts,
    read_words,
    wanted,
)
from runtime.config import loader
from runtime.postgresql.nodes import KnownNode, NodeCard
from runtime.store import database
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
    found |= {queue.OVER, "never"}
    found |= {unit for _, unit in words.UNITS} | {*usage.LIMITS.values()}
    for module in (overview, queue):
        found |= strings(module, "text", "label", "first", "second")
    return found - {"{reason}", "{state}", "/stop all"}


BELOW = (
    *(app, base, by_hand, chats, conversations, database, files, logins, request),
    *(schedule, server, service, loader, warden, connector, checks, site, rules),
    nodes,
)
"""Modules whose sentences the page shows, as they are."""

ANSWERS = (
    *(database.RETRY_REFUSALS, database.DROP_REFUSALS),
    *(database.RETRY_DELIVERY_REFUSALS, database.DROP_DELIVERY_REFUSALS),
)
REFUSALS = {warden.STORE, warden.ROOT, warden.SHARED, warden.INNER, warden.DOWN}
SHOWN_STATUSES = (400, 401, 403, 404, 405, 409, 410, 413, 429, 500, 503, 507)
NODES = [
    KnownNode("a", state, 1, NodeCard(), state != "left", is_drained)
    for state in ("up", "left", "fenced")
    for is_drained in (False, True)
]
BOTH = (False, True)
NAMED = {
    *(nodes.state_of(x, y, has_work=z) for x in NODES for y in "ab" for z in BOTH),
    *(HTTPStatus(each).phrase for each in SHOWN_STATUSES),
    *(each.replace("_", " ") for each in (*CATEGORIES, "fact")),
    *get_args(Kind),
    *words.REASONS.values(),
    *base.PARTS.values(),
    *(text for each in ANSWERS for text in each.values()),
    *REFUSALS,
}
"""What views pass on from below by its name, or whole."""


def below() -> str:
    """Give all texts of the modules below, one after the other."""
    trees = [ast.parse(Path(str(x.__file__)).read_text("utf-8")) for x in BELOW]
    return "\n".join(
        each.value
        for tree in trees
        for each in ast.walk(tree)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    )


CATALOGUES = read_words()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_is_translated_with_what_is_filled_in(language: str) -> None:
    texts = CATALOGUES[language]._texts
    assert (said() | NAMED) - set(texts) == set()
    for english, told in texts.items():
        assert set(FIELD.findall(english)) == set(FIELD.findall(told)), english


def test_no_translation_is_of_a_text_that_nobody_says() -> None:
    own = {"Actor", "month", "the process ended in the middle of it"}
    titles = {"Messages", "Time to answer", "Dollars", "Tokens", "Failed answers"}
    titles |= {"Longest wait in the queue", "Event loop lag"}
    periods = {"1 day", "7 days", "30 days", "day"}
    steps = {text for _, text in queue.STEPS.values()}
    known = said() | own | titles | periods | steps | {"its receipt is not genuine"}
    known |= NAMED | {"first words over", "{count} bytes", "… ({count} characters)"}
    known |= {"sender", "account", "group", "person", "input", "output"}
    known |= {"rate", "content", "failures", "by hand"}
    known.add("{method} {path}: Not Found")
    gone = database.DROPPED_DELIVERIES.values()
    known |= {f"delivery {{id}} is {each}" for each in gone}
    told = below()
    own_texts = read_texts(shipped_settings() / "locale" / "de" / words.CATALOGUE)
    for text in set(own_texts) - known:
        pieces = [x.strip(" .:;,()") for x in PLACE.split(text)[::2]]
        missing = [each for each in pieces if each not in told]
        assert not missing, text


SENTENCES = {
    "there is no conversation 'x y', or no more of it": (
        "es gibt kein Gespräch 'x y', oder nicht mehr davon"
    ),
    "message 01AB is running: an agent is working on it; wait for its end": (
        "Nachricht 01AB ist „läuft“: ein Agent arbeitet daran; warte das Ende ab"
    ),
    "no message has an id that is or begins with 'a'": (
        "keine Id von „Nachricht“ lautet 'a' oder beginnt so"
    ),
    "callboard/agents/anna/agent is killed; its supervisor restarts it": (
        "callboard/agents/anna/agent ist beendet; sein Aufseher startet ihn neu"
    ),
    "show this list": "zeigt diese Liste",
    "Sam has {braces} and more words": "Sam has {braces} and more words",
}


@pytest.mark.parametrize("english", SENTENCES)
def test_a_sentence_from_below_is_translated_with_what_stands_in_it(
    english: str,
) -> None:
    assert CATALOGUES["de"].say(english) == SENTENCES[english]
    assert Words().say(english) == english


def test_a_text_written_to_take_long_is_said_at_once() -> None:
    """Each place could end at each of these; tried in all ways it would take hours."""
    tries = ": " * 200 + ": there is no " * 40 + " " * 400 + " (known: " * 50
    assert CATALOGUES["de"].say(tries) == tries


def test_sentences_within_sentences_without_end_are_said() -> None:
    text = "Over: " * 300 + "x"
    told = CATALOGUES["de"].say(text)
    assert told.endswith("Over: x")
    assert not told.startswith("Over: ")


@given(st.text(max_size=80), st.sampled_from(LANGUAGES))
def test_any_text_can_be_said_in_any_language(text: str, language: str) -> None:
    texts = CATALOGUES[language]
    told = texts.say(f"there is no setting {text!r}")
    assert repr(text) in told
    assert told != f"there is no setting {text!r}"
    assert isinstance(texts.say(text), str)
    assert isinstance(texts.reason(text) + texts.state(text) + texts.part(text), str)


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
    assert english.brief(0.34) == "340\u00a0ms"
    assert english.brief(2.44) == "2.4\u00a0s"
    assert english.brief(300) == "5\u00a0min"
    assert french.when("1970-01-02T01:00:00+01:00") == "02/01/1970 00:00:00 UTC"


@given(st.text(), st.integers(1, 20))
def test_a_text_that_is_cut_says_so(text: str, most: int) -> None:
    shown = beginning(text, most)
    assert len(shown) <= most + 1
    assert shown == text or (shown[-1] == "…" and text.startswith(shown[:-1]))


def test_no_page_cuts_a_text_in_another_way() -> None:
    pages = Path(request.__file__).parent.glob("templates/*.html")
    written = "".join(each.read_text(encoding="utf-8") for each in pages)
    cuts = re.findall(r"\[:\d{2,}\]|\|truncate", written)
    assert cuts == ["[:20]"], "the agents of a room, which are no text"
