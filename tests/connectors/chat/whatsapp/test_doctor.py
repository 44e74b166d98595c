"""`callboard doctor` says of each number whether it can be used, and what to do."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from connectors.admin.probes import Finding
from connectors.commands.doctor.main import connector_probes
from connectors.config.app import AppConfig
from tests.fakes.whatsapp.graph import refusal
from tests.support.chat.whatsapp_bed import ANNA, WhatsAppBed

OURS = "https://bots.example.org/platforms/whatsapp"


async def look(bed: WhatsAppBed) -> list[Finding]:
    """Ask as doctor does."""
    app = AppConfig(connectors={"whatsapp": bed.config})
    found: list[Finding] = []
    for probe in connector_probes(app, bed.server.network):
        found += await probe.ask()
    assert "EAA-token" not in repr(found)
    assert bed.server.said == []
    return found


@pytest.mark.parametrize(
    ("fault", "told", "cure"),
    [
        (refusal(401, 190, "expired", 463), "expired", "a new token"),
        (refusal(403, 10, "perm"), "a permission", "a new token"),
        (refusal(400, 100, "none", 33), "100/33", "phone_number_id"),
        (httpx.ConnectError("no route"), "no route", "graph_url"),
        (httpx.Response(503), "503", "try again"),
    ],
)
async def test_a_number_that_cannot_be_used_is_told(
    fault: Any, told: str, cure: str
) -> None:
    bed = WhatsAppBed()
    bed.server.faults.append(("/1001", fault))
    (found,) = await look(bed)
    assert found.state == "wrong"
    assert found.text.startswith("connectors.whatsapp.accounts.anna: ")
    assert told in found.text
    assert cure in found.cure


async def test_numbers_are_told_as_people_know_them() -> None:
    bed = WhatsAppBed("anna", "ben")
    anna, _, ben, _ = await look(bed)
    assert anna.state == ben.state == "ok"
    assert "anna: the number +1 555 0001, Anna can be used" in anna.text


@pytest.mark.parametrize(
    ("hooks", "state", "told"),
    [
        ({"application": OURS}, "ok", f"Meta calls {OURS}"),
        ({"application": f"{OURS}?x=secret"}, "ok", f"Meta calls {OURS}"),
        (
            {"application": "https://x.test/", "phone_number": f"{OURS}/"},
            "ok",
            OURS,
        ),
        (
            {"application": OURS, "phone_number": "https://x.test/"},
            "wrong",
            "not us",
        ),
        ({"whatsapp_business_account": f"{OURS}/anna"}, "wrong", "not us"),
        ({}, "warning", "Meta does not say"),
    ],
)
async def test_where_meta_calls_is_told(
    hooks: dict[str, str], state: str, told: str
) -> None:
    bed = WhatsAppBed("anna", "ben")
    bed.server.hooks[ANNA] = hooks
    _, found, *_ = await look(bed)
    assert found.state == state
    assert told in found.text
    assert "secret" not in found.text
    assert state == "ok" or "/platforms/whatsapp," in found.cure
