"""Proves that clients make, change and stop agents as far as the settings let them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import pytest

from actors import names
from actors.agents import rows as staff_rows
from actors.agents.hired import HiringTerms
from actors.config.agents import HiringConfig
from connectors.web.eliza.messages import to_uuid
from connectors.web.eliza.platform import WebConfig, WebKeyConfig
from connectors.web.server import ApiError
from runtime import __version__
from runtime.clock import SystemClock
from runtime.secret import Secret
from tests.fakes.web.backstage import FakeStaff
from tests.fakes.web.eliza import ANNA, BEN, ZOE, WebBed, open_web

AGENTS = "/api/agents"
CARL = to_uuid("Carl the Clerk")
CHARACTER = {
    "name": "Carl the Clerk",
    "bio": ["counts things", "never sleeps"],
    "system": "You count.",
    "style": {"chat": ["be brief"]},
    "plugins": ["@elizaos/plugin-sql"],
}


@asynccontextmanager
async def open_house(who: Any = "owners", **more: Any) -> AsyncGenerator[WebBed]:
    """Run a web channel of a company whose `anna` leads the others."""
    async with open_web(conductor=more.pop("conductor", "anna"), **more) as bed:
        terms = HiringTerms(
            hiring=HiringConfig(who=who),
            settled={"anna": "main", "ben": "main"},
            models=frozenset({"main"}),
        )
        bed.company.actors[names.STAFF] = FakeStaff(bed.company, terms)
        yield bed


async def test_an_agent_is_made_of_a_character_and_says_what_it_cannot_have() -> None:
    async with open_house() as bed:
        made = await bed.ask("POST", AGENTS, json={"characterJson": CHARACTER})
        assert (made["id"], made["name"]) == (CARL, "Carl the Clerk")
        assert made["leftOut"] == ["plugins"]
        assert made["madeBy"] == "anna"
        assert made["bio"] == "counts things"
        assert made["system"].startswith("You count.\n\nAbout you:\ncounts things")
        assert made["system"].endswith("How you write (chat):\nbe brief")
        listed = (await bed.ask("GET", AGENTS))["agents"]
        assert [each["name"] for each in listed] == ["anna", "ben", "Carl the Clerk"]
        rows = await staff_rows.read(bed.company.store)
        agent = rows.agents["carl-the-clerk"].agent
        assert agent.asked_by == "web/key"


async def test_what_the_settings_do_not_grant_is_not_done() -> None:
    body = {"characterJson": CHARACTER}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"who": "nobody"}, "[hiring] who"),
        ({"conductor": ""}, "set is_conductor = true"),
    ]
    for more, why in cases:
        async with open_house(**more) as bed:
            response = await bed.client.post(AGENTS, json=body)
            error = response.json()["error"]
            assert (response.status_code, error["code"]) == (400, "CREATE_ERROR")
            assert why in error["message"]


async def test_nonsense_makes_no_agent() -> None:
    async with open_house() as bed:
        for body in (
            {},
            {"characterPath": "/etc/passwd"},
            {"characterJson": {"name": "x", "bio": 7}},
            {"characterJson": {"name": "7up", "system": "x"}},
            {"characterJson": {"name": "Anna", "system": "x"}},
            {"characterJson": {"name": "!", "system": "x"}},
            {"characterJson": {"name": "dan", "system": "x", "tools": ["run_shell"]}},
            {"characterJson": {"name": "dan", "system": "x", "model": "other"}},
        ):
            assert (await bed.refused("POST", AGENTS, json=body))[0] == 400
        assert len((await bed.ask("GET", AGENTS))["agents"]) == 2


async def test_an_agent_that_was_made_is_changed_and_forgotten() -> None:
    async with open_house() as bed:
        await bed.ask("POST", AGENTS, json={"characterJson": CHARACTER})
        path = f"{AGENTS}/{CARL}"
        changed = await bed.ask("PATCH", path, json={"bio": "counts slowly"})
        assert changed["bio"] == "counts slowly"
        for body in ({}, {"plugins": ["x"]}, {"bio": 7}):
            assert (await bed.refused("PATCH", path, json=body))[0] == 400
        assert (await bed.client.delete(path)).status_code == 204
        refused = await bed.refused("GET", path)
        assert refused == (404, "AGENT_NOT_FOUND")


async def test_an_agent_of_the_settings_stays_as_they_say() -> None:
    async with open_house() as bed:
        path = f"{AGENTS}/{BEN}"
        refused = await bed.refused("PATCH", path, json={"bio": "other"})
        assert refused == (400, "UPDATE_ERROR")
        assert await bed.refused("DELETE", path) == (409, "AGENT_OF_SETTINGS")


async def test_agents_rest_and_are_woken() -> None:
    async with open_house() as bed:
        await bed.ask("POST", AGENTS, json={"characterJson": CHARACTER})
        for name, agent_id in (("ben", BEN), ("carl-the-clerk", CARL)):
            path = f"{AGENTS}/{agent_id}"
            for _ in range(2):  # once more changes nothing
                stopped = await bed.ask("POST", f"{path}/stop")
                assert stopped["status"] == "inactive"
            assert name not in bed.company.names
            assert (await bed.ask("GET", path))["enabled"] is False
            started = await bed.ask("POST", f"{path}/start")
            assert started["status"] == "active"
            assert name in bed.company.names
        found = await bed.company.store.records(staff_rows.CHANGE)
        assert len(found) == 4


async def test_who_was_removed_meanwhile_cannot_be_put_to_rest() -> None:
    async with open_house() as bed:
        await bed.ask("POST", AGENTS, json={"characterJson": CHARACTER})
        agents = bed.transport.services.agents
        agent = await agents.one(CARL)
        assert (await bed.client.delete(f"{AGENTS}/{CARL}")).status_code == 204
        with pytest.raises(ApiError, match="agent") as caught:
            await agents.put_to(agent, is_active=False)
        assert caught.value.status == 404


async def test_only_who_operates_the_program_changes_agents() -> None:
    scopes: Any = ("read", "write", "manage", "act")
    key = WebKeyConfig(key=Secret("the key of a page"), scopes=scopes)
    config = WebConfig(port=0, keys={"page": key})
    async with open_house(config=config) as bed:
        headers = {"X-API-KEY": "the key of a page"}
        for way, path in (
            ("POST", AGENTS),
            ("PATCH", f"{AGENTS}/{ANNA}"),
            ("DELETE", f"{AGENTS}/{ANNA}"),
            ("POST", f"{AGENTS}/{ANNA}/stop"),
            ("POST", "/api/server/stop"),
            ("GET", "/api/system/env/local"),
            ("POST", "/api/system/env/local"),
        ):
            refused = await bed.refused(way, path, headers=headers)
            assert refused == (403, "FORBIDDEN")
        assert bed.company.ends == 0


async def test_settings_are_shown_masked_and_are_not_changed() -> None:
    settings = {"models.main.api_key": "***", "log.level": "info"}
    async with open_house(settings=settings) as bed:
        path = "/api/system/env/local"
        assert await bed.ask("GET", path) == settings
        refused = await bed.refused("POST", path, json={"content": {"a": "b"}})
        assert refused == (403, "READ_ONLY_SETTINGS")
        stopped = await bed.ask("POST", "/api/server/stop")
        assert stopped["message"] == "Server is stopping"
        assert bed.company.ends == 1


async def test_the_status_has_all_that_either_side_speaks_of() -> None:
    async with open_house() as bed:
        status = await bed.ask("GET", "/api/server/status")
        assert status["agents"] == {"total": 2, "active": 2, "inactive": 0}
        assert 0 < status["memory"]["used"] < status["memory"]["total"]
        assert {"version", "uptime", "timestamp", "agentCount"} <= status.keys()
        assert (await bed.refused("GET", f"{AGENTS}/{ZOE}"))[0] == 404


HEALTH = {
    "status": "OK",
    "dependencies": {"agents": "healthy"},
    "checks": {"agents": {"status": "pass"}},
    "agentCount": 2,
    "version": __version__,
}

OF_PROGRAM = {
    "/api/server/ping": {"pong": True},
    "/api/server/hello": {"message": "Hello World!"},
    "/api/server/health": HEALTH,
    "/health": HEALTH,
    "/healthz": {"status": "ok"},
    "/api/system/config": {"requiresAuth": False},
    "/api/system/version": {
        "version": __version__,
        "source": "callboard",
        "environment": "production",
    },
}
"""The answers about the program, by path, without their times."""


async def test_what_is_told_of_the_program_is_whole_on_every_address() -> None:
    status = "/api/server/status"
    async with open_house() as bed:
        told = {
            path: (await bed.client.get(path)).json() for path in (*OF_PROGRAM, status)
        }
    for answer in told.values():
        if "timestamp" in answer:
            moment = datetime.fromisoformat(answer.pop("timestamp"))
            assert abs(moment.timestamp() - SystemClock().wall()) < 3600
        if "uptime" in answer:
            assert 0 <= answer.pop("uptime") < 3600
    assert told.pop(status).keys() == {
        *("status", "agentCount", "agents", "memory", "version")
    }
    assert told == OF_PROGRAM
