"""Proves what every answer says to browsers, and whose requests are taken."""

from __future__ import annotations

import pytest

from connectors.web.page.logins import POLICY, is_our_host, is_our_page
from connectors.web.page.platform import PageConfig
from tests.fakes.web.page import ANNA, JSON, form_of, open_page

ORIGIN = "https://board.example.org"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/login", 303),
        ("/login/abc", 200),
        (ANNA, 200),
        (f"{ANNA}?before=1", 200),
        ("/", 303),
        ("/nowhere", 404),
        ("/chat/with/nobody", 404),
        ("/static/000000000000/page.css", 404),
        ("/static/x/../../shelf.py", 404),
        ("/files/a0123456789abcdef01234567", 404),
        ("/logout", 405),
    ],
)
async def test_every_answer_carries_the_policy(path: str, status: int) -> None:
    async with open_page() as bed:
        response = await bed.client.get(path)
        assert response.status_code == status
        assert response.headers["content-security-policy"] == POLICY
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "same-origin"
        assert response.headers["cross-origin-opener-policy"] == "same-origin"
        assert response.headers["cache-control"] == "no-store"


async def test_files_carry_the_policy_and_are_kept() -> None:
    async with open_page() as bed, bed.browser() as browser:
        html = (await browser.get("/login")).text
        for kind in ("css", "js", "svg"):
            path = html.partition(f'.{kind}"')[0].rpartition('"')[2] + f".{kind}"
            response = await browser.get(path)
            assert response.status_code == 200
            assert response.headers["content-security-policy"] == POLICY
            assert "immutable" in response.headers["cache-control"]


def test_the_policy_lets_nothing_in_that_is_not_ours() -> None:
    assert POLICY.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in POLICY
    assert "*" not in POLICY


async def test_pages_have_no_script_or_style_of_their_own() -> None:
    async with open_page() as bed:
        await bed.say("| a | b |\n|:-:|--:|\n| 1 | 2 |")
        inbound = await bed.ingress.next()
        await bed.answer(inbound, "| a | b |\n|:-:|--:|\n| 1 | 2 |")
        html = (await bed.client.get(ANNA)).text
        assert 'class="align-center"' in html
        assert "style=" not in html
        assert "<style" not in html
        assert "<script>" not in html
        assert " on" not in {part[:3] for part in html.split('"')[::2]}


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8081", "", "[::2]"])
async def test_another_name_for_this_machine_gets_nothing(host: str) -> None:
    async with open_page() as bed:
        response = await bed.client.get("/login", headers={"host": host})
        assert response.status_code in {400, 403}
        assert "Log in" not in response.text


def test_the_name_of_a_proxy_is_known() -> None:
    plain, proxied = PageConfig(), PageConfig(origin=ORIGIN)
    assert is_our_host(proxied, "board.example.org")
    assert is_our_host(plain, "127.0.0.1:8081")
    assert is_our_host(plain, "[::1]:8081")
    assert not is_our_host(plain, "board.example.org")


@pytest.mark.parametrize(
    ("headers", "is_ours"),
    [
        ({"host": "localhost:1"}, True),
        ({"host": "localhost:1", "origin": "http://localhost:1"}, True),
        ({"host": "localhost:1", "origin": ORIGIN}, True),
        ({"host": "localhost:1", "origin": "http://localhost:2"}, False),
        ({"host": "localhost:1", "origin": "null"}, False),
        ({"host": "localhost:1", "sec-fetch-site": "cross-site"}, False),
        ({"host": "localhost:1", "sec-fetch-site": "same-site"}, False),
    ],
)
def test_forms_of_other_pages_are_known(
    headers: dict[str, str], *, is_ours: bool
) -> None:
    assert is_our_page(PageConfig(origin=ORIGIN), headers) is is_ours


async def test_a_form_without_the_sessions_token_does_nothing() -> None:
    async with open_page() as bed, bed.browser() as other:
        await bed.log_in(other)
        foreign = form_of((await other.get(ANNA)).text)["csrf"]
        for csrf in ({}, {"csrf": ""}, {"csrf": "0" * 32}, {"csrf": foreign}):
            form = {"text": "hi", "key": "k", **csrf}
            response = await bed.client.post(ANNA, data=form, headers=JSON)
            assert (response.status_code, response.json()["code"]) == (403, "bad_csrf")
        assert bed.ingress.accepted == []


async def test_a_form_of_another_site_does_nothing() -> None:
    async with open_page() as bed:
        form = form_of((await bed.client.get(ANNA)).text) | {"text": "hi"}
        for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "x"}):
            response = await bed.client.post(ANNA, data=form, headers=headers)
            assert response.status_code == 403
        assert bed.ingress.accepted == []


async def test_a_page_of_another_port_may_lead_here_and_read_nothing() -> None:
    async with open_page() as bed:
        near = {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"}
        for path in (ANNA, f"{ANNA}/events"):
            assert (await bed.client.get(path, headers=near)).status_code == 403
        followed = near | {"sec-fetch-mode": "navigate"}
        assert (await bed.client.get(ANNA, headers=followed)).status_code == 200


async def test_a_form_that_is_none_or_too_long_is_refused() -> None:
    async with open_page(PageConfig(port=0, max_body_bytes=2000)) as bed:
        sent = await bed.client.post(ANNA, json={"text": "hi"}, headers=JSON)
        assert sent.status_code == 415
        form = form_of((await bed.client.get(ANNA)).text) | {"text": "x" * 3000}
        assert (await bed.client.post(ANNA, data=form)).status_code == 413
        many = {f"field{number}": "" for number in range(101)}
        assert (await bed.client.post(ANNA, data=many)).status_code == 400
