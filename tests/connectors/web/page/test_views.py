"""Proves that a view is drawn, kept up to date and acted upon, whatever it shows."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

from connectors.web.page import request as rendering
from connectors.web.page.views.base import Refusal, View, ViewRequest, ViewValues
from tests.fakes.web.page import form_of, open_page, reading

HOSTILE = (
    "</td><script>alert(1)</script><img src=x onerror=alert(2)>"
    "\"'{{ 7654321 * 7654321 }}"
)

TEMPLATE = """{% extends "base.html" %}
{% block main %}
<h1>{{ view.title }}</h1>
<div data-live="{{ here }}">
{% block live %}<p>{{ rows|length }}: {{ rows|join(", ") }}</p>
<form id="add" method="post" action="/rows/add">{{ csrf }}
<input type="hidden" name="row" value="{{ rows|last }}"><button>Add</button></form>
{% endblock %}</div>
{% endblock %}
"""


class Rows:
    """A view of a list that grows by what is posted."""

    def __init__(self) -> None:
        self.rows = ["first"]
        self.asked: list[ViewRequest] = []
        actions: dict[str, Callable[[ViewRequest], Awaitable[str]]] = {"add": self.add}
        self.view = View("rows", "Rows", self.load, every=0.01, actions=actions)

    async def load(self, asked: ViewRequest) -> ViewValues:
        await trio.lowlevel.checkpoint()
        if asked.query.get("page") == "none":
            raise Refusal("there is no such page")
        self.asked.append(asked)
        return {"rows": tuple(self.rows)}

    async def add(self, asked: ViewRequest) -> str:
        await trio.lowlevel.checkpoint()
        row = asked.form["row"]
        if row == "no":
            raise Refusal("that <b>cannot</b> be")
        self.rows.append(row)
        return f"added {row}"


@pytest.fixture
def rows(tmp_path: Path) -> Rows:
    (tmp_path / "rows.html").write_text(TEMPLATE, encoding="utf-8")
    for each in rendering.FOLDER.glob("*.html"):
        (tmp_path / each.name).write_bytes(each.read_bytes())
    return Rows()


async def test_a_view_stands_in_the_navigation_and_shows_what_it_has(
    rows: Rows, tmp_path: Path
) -> None:
    async with open_page(views=(rows.view,), templates=tmp_path) as bed:
        html = (await bed.client.get("/rows?page=2&x=%26")).text
        assert re.search(r'<a href="/rows" aria-current="page">\s*Rows</a>', html)
        assert "<p>1: first</p>" in html
        assert 'data-live="/rows/events?page=2&amp;x=%26"' in html
        assert rows.asked[0].query == {"page": "2", "x": "&"}
        assert rows.asked[0].person == "operator"


async def test_nobody_sees_or_does_anything_who_is_not_logged_in(
    rows: Rows, tmp_path: Path
) -> None:
    async with (
        open_page(views=(rows.view,), templates=tmp_path) as bed,
        bed.browser() as browser,
    ):
        for path in ("/rows", "/rows/events"):
            assert (await browser.get(path)).headers["location"] == "/login"
        assert (await browser.post("/rows/add", data={"row": "x"})).status_code == 401
        assert rows.asked == []
        assert rows.rows == ["first"]


async def test_what_changes_is_sent_while_somebody_looks(
    rows: Rows, tmp_path: Path
) -> None:
    async with (
        open_page(views=(rows.view,), templates=tmp_path) as bed,
        reading(bed.client, "/rows") as stream,
    ):
        assert "<p>1: first</p>" in (await stream.next("live")).data
        rows.rows.append("second")
        assert "<p>2: first, second</p>" in (await stream.next("live")).data


async def test_an_action_is_told_once_above_the_view(
    rows: Rows, tmp_path: Path
) -> None:
    async with open_page(views=(rows.view,), templates=tmp_path) as bed:
        form = form_of((await bed.client.get("/rows")).text, 'id="add"')
        for row, told in (("x", "added x"), ("no", "that &lt;b&gt;cannot&lt;/b&gt;")):
            done = await bed.client.post("/rows/add?page=2", data=form | {"row": row})
            assert done.headers["location"] == "/rows?page=2"
            assert told in (await bed.client.get("/rows?page=2")).text
            assert told not in (await bed.client.get("/rows?page=2")).text
        assert rows.rows == ["first", "x"]


async def test_an_action_needs_the_sessions_token_and_a_name_there_is(
    rows: Rows, tmp_path: Path
) -> None:
    async with open_page(views=(rows.view,), templates=tmp_path) as bed:
        form = form_of((await bed.client.get("/rows")).text, 'id="add"')
        bad = await bed.client.post("/rows/add", data=form | {"csrf": "x"})
        assert bad.status_code == 403
        assert (await bed.client.post("/rows/none", data=form)).status_code == 404
        assert (await bed.client.get("/rows/add")).status_code == 405
        assert rows.rows == ["first"]


async def test_what_a_view_cannot_show_is_said(rows: Rows, tmp_path: Path) -> None:
    async with open_page(views=(rows.view,), templates=tmp_path) as bed:
        response = await bed.client.get("/rows?page=none")
        assert response.status_code == 404
        assert "there is no such page" in response.text


async def test_hostile_text_is_text_everywhere(rows: Rows, tmp_path: Path) -> None:
    rows.rows.append(HOSTILE)
    async with (
        open_page(views=(rows.view,), templates=tmp_path) as bed,
        reading(bed.client, "/rows") as stream,
    ):
        html = (await bed.client.get("/rows")).text
        for shown in (html, (await stream.next("live")).data):
            assert "<script>alert" not in shown
            assert "<img" not in shown
            assert str(7654321**2) not in shown
        form = form_of(html, 'id="add"')
        assert form["row"] == HOSTILE
        await bed.client.post("/rows/add", data=form)
        assert "<script>alert" not in (await bed.client.get("/rows")).text
