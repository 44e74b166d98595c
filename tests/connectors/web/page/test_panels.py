"""Proves what the operator's views show, to whom, and that it holds no secret."""

from __future__ import annotations

import html
import re
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace

from actors.journal import commits
from actors.messages.deliveries import GONE
from actors.messages.inbound import Address, Inbound
from connectors.chat.telegram.platform import TelegramConfig
from connectors.web.page.views import all_views
from runtime.store.rows import PARTS, Commit, Receipt
from tests.support.desk import FAILED, HELP, SECRET, STREAM, SUM, WAITING
from tests.support.panel_bed import CANARY, PanelBed, open_panels

NAMES = [each.name for each in all_views()]
PLACES = (
    *(f"/{name}" for name in NAMES),
    f"/conversations?name={STREAM}",
    f"/conversations?name={STREAM}&after=1",
    "/conversations?agent=anna&connector=cli&past=1e9_5",
    "/conversations?past=nan_x",
    f"/queue?id={FAILED}",
    f"/queue?id={SUM}:0",
    "/queue?state=completed&past=3",
    "/queue?state=%3Cscript%3E&past=-1",
    "/usage?period=30+days&by=model",
    "/usage?period=never&by=nothing",
    "/audit?chat=cli/kitchen&sender=Sam",
    "/settings?all=1",
    "/actors?top=callboard/agents",
    "/actors?top=nobody&past=x",
    "/actors?kill=callboard/agents/anna/agent",
    "/actors?kill=callboard/store",
    "/actors?kill=nobody",
)
HOSTILE = "<script>alert(1)</script>\"'><img src=x>\u202e\x1b[31m"
OWN_TAGS = re.compile(r"<(script|img|iframe|object|style)\b[^>]*>")


async def test_every_view_is_for_who_is_logged_in(tmp_path: Path) -> None:
    async with open_panels(tmp_path) as bed, bed.stranger() as stranger:
        for place in PLACES:
            await bed.show(place)
            assert (await stranger.get(place)).headers["location"] == "/login"
        for name in NAMES:
            events = f"/{name}/events"
            assert (await stranger.get(events)).status_code == 303


async def test_a_bot_that_another_node_has_is_not_said_to_be_down(
    tmp_path: Path,
) -> None:
    async with open_panels(tmp_path) as bed:
        app, bot = bed.app, TelegramConfig(accounts={})
        app.config = replace(
            app.config, connectors=app.config.connectors | {"bot": bot}
        )
        assert "not running" in await bed.show("/overview")
        duties = app.company.services.duties
        duties.parts = frozenset(range(PARTS))
        duties.is_leased = "bot".__eq__
        shown = await bed.show("/overview")
        assert "on another node" in shown
        assert "not running" not in shown


@pytest.mark.parametrize(("allowed", "is_told"), [(-1.0, True), (1e9, False)])
async def test_that_the_event_loop_is_late_is_told_only_if_it_is(
    allowed: float, *, is_told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connectors.web.page.views.overview.SLOW_LOOP", allowed)
    async with open_panels(tmp_path) as bed:
        shown = await bed.show("/overview")
    assert bool(re.search(r"The event loop is late by \d+\.\d s", shown)) == is_told


async def test_no_form_without_its_token_does_anything(tmp_path: Path) -> None:
    async with open_panels(tmp_path) as bed, bed.stranger() as stranger:
        for view in all_views():
            for action in view.actions:
                place = f"/{view.name}/{action}"
                form = {"id": FAILED, "name": "callboard/agents/anna"}
                assert (await stranger.post(place, data=form)).status_code == 401
                assert (await bed.client.post(place, data=form)).status_code == 403
        assert FAILED in await bed.show("/queue?state=failed")


async def test_secrets_of_the_settings_are_nowhere(tmp_path: Path) -> None:
    async with open_panels(tmp_path) as bed:
        await bed.say(f"the key is {CANARY} or {CANARY[:-1]}")
        await bed.wait_shown("/audit", "the key is")
        cookie = next(iter(bed.client.cookies.values()))
        for place in PLACES:
            shown = html.unescape(await bed.show(place))
            for secret in (CANARY, SECRET, cookie):
                assert secret not in shown, place
        assert 'api_key</dt><dd class="mono">&#34;***&#34;' in await bed.show(
            "/settings"
        )
        assert "the key is *** or" in await bed.show("/audit")


async def write_hostile(bed: PanelBed) -> None:
    inbound = Inbound(
        id="01HOSTILE",
        platform="terminal",
        platform_id="01HOSTILE",
        address=Address("cli", HOSTILE),
        sender_id=HOSTILE,
        sender_name=HOSTILE,
        text=HOSTILE,
        received_at=1.0,
    )
    accept = commits.as_accept(inbound, 1.0)
    await bed.app.store.commit(Commit(at=1.0, accepts=(accept,)))


async def test_what_people_are_called_is_no_markup(tmp_path: Path) -> None:
    async with open_panels(tmp_path) as bed:
        await write_hostile(bed)
        for place in (*PLACES, "/queue?id=01HOSTILE", f"/audit?chat={HOSTILE[:30]}"):
            shown = await bed.show(place)
            tags = [found[0] for found in OWN_TAGS.finditer(shown)]
            assert all('src="/static/' in tag for tag in tags), tags
            assert len(tags) == 1
            assert "\u202e" not in shown
            assert "\x1b" not in shown
        assert html.escape(HOSTILE[:25], quote=False) in await bed.show("/queue")


async def test_the_overview_says_how_it_gets_on(tmp_path: Path) -> None:
    async with open_panels(tmp_path) as bed:
        shown = await bed.show("/overview")
        assert "Ready: messages are taken in and answered." in shown
        assert "Messages that could not be answered: 1" in shown
        assert 'id="account-page"' in shown
        bed.app.is_draining = True
        assert "it is being stopped" in await bed.show("/overview")
        bed.app.is_draining = False


async def test_settings_say_where_they_were_written(tmp_path: Path) -> None:
    async with open_panels(tmp_path) as bed:
        shown = await bed.show("/settings")
        origin = r'kind</dt><dd class="mono">&#34;page&#34; <span[^>]*>[^<]*:\d+<'
        assert re.search(origin, shown)
        assert "In force since" in shown
        assert "[connectors.page]" in shown
        assert "session_hours" not in shown
        assert "session_hours" in await bed.show("/settings?all=1")


async def test_a_conversation_is_told_event_by_event(tmp_path: Path) -> None:
    async with open_panels(tmp_path) as bed:
        assert STREAM in await bed.show("/conversations")
        shown = await bed.show(f"/conversations?name={STREAM}")
        words = ("Hello Sam.", "calculate", "84", "receipt-1", "nobody knows")
        assert [word for word in words if word not in shown] == []
        assert (await bed.client.get("/conversations?name=nobody")).status_code == 404


async def test_what_is_not_there_is_said_so(tmp_path: Path) -> None:
    async with open_panels(tmp_path) as bed:
        for place in ("/queue?id=nobody", "/schedule?id=nobody", "/queue?id=%00"):
            response = await bed.client.get(place)
            assert response.status_code == 404, place
            assert "</html>" in response.text


async def test_rows_that_wait_can_be_acted_upon_as_the_store_lets_one(
    tmp_path: Path,
) -> None:
    async with open_panels(tmp_path) as bed:
        shown = await bed.show("/queue")
        assert f'id="retry-{FAILED}"' in shown
        assert f'id="retry-{WAITING}"' in shown
        assert f'id="drop-{SUM}:0"' in shown
        assert f'id="retry-{SUM}:0"' in shown
        done = await bed.show("/queue?state=completed")
        assert f'id="drop-{SUM}"' not in done


async def test_what_nobody_is_there_to_take_is_not_offered(tmp_path: Path) -> None:
    async with open_panels(tmp_path) as bed:
        receipt = Receipt(f"{HELP}:0", "dead", GONE)
        await bed.app.store.commit(Commit(at=1.0, receipts=(receipt,)))
        assert f"{HELP}:0" not in await bed.show("/queue")
        shown = await bed.show(f"/queue?id={HELP}")
        assert GONE in shown
        assert f'id="retry-{HELP}:0"' not in shown


async def test_an_actor_that_has_ended_is_said_to_be_gone(tmp_path: Path) -> None:
    async with open_panels(tmp_path) as bed:
        gone = "nobody is not there now; these are all actors."
        assert gone in await bed.show("/actors?top=nobody")
        assert "is not there now" not in await bed.show("/actors?top=callboard/agents")


def take_away(folder: Path) -> None:
    for file in folder.glob("callboard.db*"):
        file.rename(folder / f"away-{file.name}")


@pytest.mark.parametrize("accept", ["text/html", "application/json"])
async def test_a_database_that_is_gone_is_an_error_page(
    tmp_path: Path, accept: str
) -> None:
    async with open_panels(tmp_path) as bed:
        take_away(tmp_path)
        headers = {"accept": accept}
        response: httpx.Response = await bed.client.get("/audit", headers=headers)
        assert response.status_code == 404
        assert str(tmp_path / "callboard.db") in html.unescape(response.text)
        assert "Not ready" in await bed.show("/overview")
