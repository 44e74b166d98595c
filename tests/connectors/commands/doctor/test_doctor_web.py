"""What `callboard doctor` says of web channels and plain WebSockets."""

from __future__ import annotations

import pytest

from connectors.admin.probes import Finding
from connectors.chat.websocket import doctor as sockets_doctor
from connectors.chat.websocket.platform import WebSocketConfig
from connectors.web.eliza import doctor as web_doctor
from connectors.web.eliza.platform import WebConfig, WebKeyConfig
from runtime.secret import Secret
from tests.fakes.sites.threaded_site import open_little_site
from tests.fakes.web.eliza import open_web
from tests.support.chat.websocket_bed import open_sockets

GOOD = Secret("x8Jq1Zc0rT5uWn3vB7yK2mLd")
AT = "connectors.web"


def states(found: list[Finding]) -> list[str]:
    return [each.state for each in found]


async def look(config: WebConfig | WebSocketConfig) -> list[Finding]:
    if isinstance(config, WebConfig):
        return await web_doctor.look(AT, config)
    return await sockets_doctor.look(AT, config)


async def test_a_free_port_and_no_key_on_this_machine_are_well() -> None:
    for config in (WebConfig(port=0), WebSocketConfig(port=0)):
        found = await look(config)
        assert states(found) == ["ok", "ok"]
        assert "every program on this machine" in found[1].text


async def test_servers_of_ours_that_run_are_known_by_what_they_say() -> None:
    async with open_web() as bed:
        found = await look(WebConfig(port=bed.port))
        assert "a Callboard runs at" in found[0].text
        assert "agents: 2" in found[0].text
        other = await look(WebSocketConfig(port=bed.port))
        assert other[0].state == "wrong"
    async with open_sockets() as sockets:
        found = await look(WebSocketConfig(port=sockets.port))
        assert "a Callboard runs at" in found[0].text
        other = await look(WebConfig(port=sockets.port))
        assert other[0].state == "wrong"


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (503, b'{"status": "DEGRADED"}', "nobody who answers"),
        (200, b"<html>", "another program has it"),
    ],
)
async def test_who_else_has_the_port_is_told(
    status: int, body: bytes, words: str
) -> None:
    with open_little_site({"GET /api/server/health": (status, body)}) as site:
        port = int(site.url.rpartition(":")[2])
        found = await look(WebConfig(port=port))
    assert found[0].state == "wrong"
    assert words in found[0].text
    assert found[0].cure


async def test_keys_that_can_be_guessed_are_warned_of_and_never_shown() -> None:
    keys = {"page": WebKeyConfig(key=Secret("aaaaaaaaaaaaaaaaaaaa"))}
    config = WebConfig(port=0, api_key=Secret("sesame"), keys=keys)
    found = await look(config)
    assert states(found) == ["ok", "warning", "warning"]
    assert [each.text.partition(":")[0] for each in found[1:]] == [
        f"{AT}.api_key",
        f"{AT}.keys.page.key",
    ]
    assert not any("sesame" in each.text for each in found)


@pytest.mark.parametrize(
    ("origin", "state"),
    [
        ("https://chat.example.org", []),
        ("http://localhost:8000", []),
        ("http://chat.example.org", ["warning"]),
        ("*", ["warning"]),
    ],
)
async def test_pages_that_others_can_change_are_warned_of(
    origin: str, state: list[str]
) -> None:
    for config in (
        WebConfig(port=0, api_key=GOOD, origins=(origin,)),
        WebSocketConfig(port=0, api_key=GOOD, origins=(origin,)),
    ):
        assert states(await look(config))[1:] == state


async def test_a_server_for_others_should_have_a_proxy_before_it() -> None:
    config = WebSocketConfig(port=0, api_key=GOOD, host="0.0.0.0")  # noqa: S104
    found = await look(config)
    assert found[1].state == "warning"
    assert "proxy" in found[1].cure
