"""What `callboard doctor` finds out of Slack: tokens, scopes, Socket Mode."""

from __future__ import annotations

from msgspec import structs

from connectors.admin.probes import Finding
from connectors.asyncio_bridge.bridge import Bridge
from connectors.chat.slack.doctor import NEEDED, probe
from tests.fakes.slack.replies import ok, refusal
from tests.fakes.slack.server import serving
from tests.support.chat.slack_bed import SlackBed


async def probed(bed: SlackBed) -> dict[str, list[Finding]]:
    bridge = Bridge()
    await bridge.start()
    try:
        async with serving(bed.slack, bridge) as server:
            url = f"{server.url}/api/"
            return await probe(structs.replace(bed.config, base_url=url))
    finally:
        await bridge.aclose()


async def test_an_app_with_all_it_needs_is_right() -> None:
    bed = SlackBed("anna")
    headers = {"x-oauth-scopes": ",".join(NEEDED)}
    who = {"user_id": "UANNA", "user": "anna", "team": "Crew", "bot_id": "BANNA"}
    bed.slack.faults.append(("auth.test", ok(who, headers)))
    found = await probed(bed)
    assert [(each.state, each.text) for each in found["anna"]] == [
        ("ok", "it is anna in Crew"),
        ("ok", "Socket Mode is on"),
    ]
    assert bed.slack.apps["UANNA"].links == []


async def test_scopes_that_nobody_tells_are_not_called_missing() -> None:
    bed = SlackBed("anna")
    bed.slack.faults.append(("auth.test", ok({"user": "anna", "team": "Crew"})))
    found = (await probed(bed))["anna"]
    assert [each.state for each in found] == ["ok", "unknown", "ok"]
    assert "scopes" in found[1].text


async def test_a_missing_scope_says_what_does_not_work_and_what_to_do() -> None:
    found = (await probed(SlackBed("anna")))["anna"]
    states = {each.state for each in found}
    assert states == {"ok", "warning"}
    (files,) = [each for each in found if "files:read" in each.text]
    assert "it reads no files" in files.text
    assert "install it again" in files.cure


async def test_tokens_that_do_not_hold_are_wrong_each_by_itself() -> None:
    bed = SlackBed()
    bed.slack.faults.append(("auth.test", refusal("invalid_auth")))
    bed.slack.faults.append(("apps.connections.open", refusal("invalid_auth")))
    found = await probed(bed)
    (anna,) = found["anna"]
    assert (anna.state, anna.text) == ("wrong", "bot_token: Slack says invalid_auth")
    assert found["ben"][-1].state == "wrong"
    assert "app_token" in found["ben"][-1].text
