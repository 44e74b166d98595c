"""Proves that a link logs one browser in, once, and that sessions end when told."""

from __future__ import annotations

import pytest
import trio

from connectors.web.page.login_rows import LINK, SESSION
from connectors.web.page.logins import (
    cookie_name,
    look_cookie,
    look_value,
    port_of,
)
from connectors.web.page.platform import PageConfig
from tests.fakes.store.in_memory import MemoryStore
from tests.fakes.web.page import ANNA, JSON, form_of, open_page


async def test_to_look_at_a_link_uses_nothing_up() -> None:
    async with open_page() as bed, bed.browser() as browser:
        token = await bed.link()
        pages = [await browser.get(f"/login/{token}") for _ in range(3)]
        for page in pages:
            assert page.status_code == 200
            assert "set-cookie" not in page.headers
        form = form_of(pages[-1].text, 'action="/login"')
        assert form == {"token": token}
        entered = await browser.post("/login", data=form)
        assert entered.status_code == 303
        assert (await browser.get(ANNA)).status_code == 200


async def test_a_link_holds_once_also_for_those_who_come_at_the_same_moment() -> None:
    async with open_page() as bed:
        token = await bed.link()
        statuses: list[int] = []

        async def enter() -> None:
            async with bed.browser() as browser:
                response = await browser.post("/login", data={"token": token})
                statuses.append(response.status_code)

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(enter)
        assert sorted(statuses) == [303, 403, 403, 403, 403]


@pytest.mark.parametrize("token", ["", "nobody-made-it", "x" * 5000])
async def test_a_link_that_was_never_made_lets_nobody_in(token: str) -> None:
    async with open_page() as bed, bed.browser() as browser:
        response = await browser.post("/login", data={"token": token})
        assert response.status_code == 403
        assert "run <code>callboard login</code> for another one" in response.text
        assert "set-cookie" not in response.headers
        assert bed.ingress.refused[-1].reason == "bad_link"
        shown = bed.metrics.render().decode()
        assert 'page_refused_total{connector="page",reason="bad_link"} 1.0' in shown


async def test_a_link_that_is_too_old_lets_nobody_in() -> None:
    async with open_page() as bed, bed.browser() as browser:
        token = await bed.link(seconds=-1.0)
        assert (await browser.post("/login", data={"token": token})).status_code == 403


async def test_whoever_fails_too_often_must_wait_unless_a_link_holds() -> None:
    async with open_page() as bed, bed.browser() as browser:
        for _ in range(10):
            failed = await browser.post("/login", data={"token": "guess"})
            assert failed.status_code == 403
        failed = await browser.post("/login", data={"token": "guess"})
        assert failed.status_code == 429
        assert int(failed.headers["retry-after"]) > 0
        assert (await bed.log_in(browser)).status_code == 303


async def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites() -> None:
    async with open_page() as bed, bed.browser() as browser:
        cookie = (await bed.log_in(browser)).headers["set-cookie"]
        for part in ("HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=604800"):
            assert part in cookie
        assert "Secure" not in cookie


@pytest.mark.parametrize(
    ("origin", "seen"),
    [
        ("", {8081, 8082}),
        ("http://chat.test", {80}),
        ("http://chat.test:8000", {8000}),
        ("https://chat.test", {443}),
    ],
)
def test_a_browser_behind_a_proxy_is_known_at_each_node(
    origin: str, seen: set[int]
) -> None:
    nodes = [PageConfig(origin=origin, port=port) for port in (8081, 8082)]
    assert {port_of(node) for node in nodes} == seen
    assert len({cookie_name(node) for node in nodes}) == len(seen)
    value = look_cookie(nodes[0], "dark").partition(";")[0]
    assert look_value(nodes[1], value) == ("dark" if origin else "")


async def test_behind_a_certificate_the_cookie_goes_nowhere_else() -> None:
    config = PageConfig(port=0, origin="https://board.example.org")
    async with open_page(config) as bed, bed.browser() as browser:
        cookie = (await bed.log_in(browser)).headers["set-cookie"]
        assert cookie.startswith("__Host-callboard=")
        assert "; Secure" in cookie


async def test_neither_links_nor_cookies_stand_in_the_database() -> None:
    store = MemoryStore()
    async with open_page(store=store) as bed, bed.browser() as browser:
        token, other = await bed.link(), await bed.link()
        cookie = await browser.post("/login", data={"token": token})
        value = cookie.headers["set-cookie"].partition("=")[2].partition(";")[0]
        rows = [*await store.entries(LINK), *await store.entries(SESSION)]
        assert len(rows) == 3  # the link that is left, and two browsers
        for row in rows:
            for secret in (token, other, value):
                assert secret not in row.id
                assert secret.encode() not in row.body


async def test_who_is_not_logged_in_is_sent_to_the_door() -> None:
    async with open_page() as bed, bed.browser() as browser:
        for path in ("/", "/chat", ANNA, f"{ANNA}/events"):
            response = await browser.get(path)
            assert (response.status_code, response.headers["location"]) == (
                303,
                "/login",
            )
        for path in (ANNA, f"{ANNA}/events"):
            assert (await browser.get(path, headers=JSON)).status_code == 401
        assert (await browser.post(ANNA, data={"text": "hi"})).status_code == 401


async def test_who_logs_out_is_out_wherever_the_cookie_went() -> None:
    async with open_page() as bed, bed.browser() as thief:
        thief.cookies.update(bed.client.cookies)
        form = form_of((await bed.client.get(ANNA)).text, 'action="/logout"')
        left = await bed.client.post("/logout", data=form)
        assert left.headers["location"] == "/login"
        assert (await thief.get(ANNA)).headers["location"] == "/login"


async def test_of_too_many_browsers_the_first_is_logged_out() -> None:
    async with open_page(PageConfig(port=0, max_sessions=2)) as bed:
        async with bed.browser() as second, bed.browser() as third:
            await bed.log_in(second)
            await bed.log_in(third)
            assert (await bed.client.get(ANNA)).status_code == 303
            assert (await second.get(ANNA)).status_code == 200
            assert (await third.get(ANNA)).status_code == 200
        assert len(await bed.store.entries(SESSION)) == 2


async def test_a_session_ends_by_its_time() -> None:
    config = PageConfig(port=0, session_hours=0.5 / 3600)
    async with open_page(config) as bed:
        with trio.fail_after(5):
            while (await bed.client.get(ANNA)).status_code == 200:
                pass
        assert (await bed.client.get(ANNA)).headers["location"] == "/login"


async def test_whom_the_settings_name_no_more_is_out() -> None:
    store = MemoryStore()
    async with open_page(PageConfig(port=0, people=("sam",)), store) as before:
        jar = before.client.cookies
        assert (await before.client.get(ANNA)).status_code == 200
    config = PageConfig(port=0, people=("zoe",))
    async with open_page(config, store) as bed, bed.browser() as browser:
        browser.cookies.update(jar)
        assert (await browser.get(ANNA)).status_code == 303
