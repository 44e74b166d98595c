"""Proves that both sides are served where the official client and server disagree.

`PROVED` names every such fault of release 1.7.2, by its number in our notes, and the
tests that show what is done about it.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import trio

from connectors.web.eliza.platform import Scope, WebConfig, WebKeyConfig
from runtime.secret import Secret
from tests.fakes.web.eliza import ANNA, API, SAM, ZERO, ZOE, open_web
from tests.fakes.web.eliza_routes import all_routes

HERE = Path(__file__).parent

PROVED: dict[str, tuple[str, ...]] = {
    # 2xx without `data`, which the client resolves to undefined
    "X1": ("test_what_stands_beside_success_stands_in_data_too",),
    # the client's bodies are refused by the official server
    "X2": (
        "test_an_agent_elsewhere_submits_and_agents_here_hear_it",
        "test_messages_of_another_platform_are_taken_once_each",
        "test_a_channel_without_participants_is_its_makers",
        "test_an_end_is_told_by_either_body",
    ),
    # routes that are called, and not served
    "X3": (
        "test_messages_are_shown_changed_sought_and_deleted",
        "test_an_end_is_told_by_either_body",
        "test_a_server_is_made_filled_and_deleted",
        "test_an_agent_answers_what_it_is_told",
    ),
    # errors that are a text, shown as "Unknown error"
    "X4": ("test_every_route_refuses_nonsense_in_one_shape",),
    # jobs that never complete; agents that never hear each other
    "X5": (
        "test_a_job_completes_by_what_an_agent_elsewhere_submits",
        "test_an_agent_elsewhere_submits_and_agents_here_hear_it",
    ),
    # a message that is deleted and stays remembered
    "X6": (
        "test_what_came_of_a_message_is_forgotten_with_it",
        "test_a_channel_that_is_cleared_is_forgotten_and_nothing_else",
    ),
    # `before` as ISO text
    "X7": ("test_pages_go_back_in_time_in_ms_and_in_iso",),
    # two kinds of readers of server-sent events, and of keys
    "X8": (
        "test_sse_streams_pieces_for_both_kinds_of_readers",
        "test_a_persons_key_speaks_for_them_and_sees_their_channels_alone",
    ),
    # broadcasts without channelId
    "X9": ("test_who_joins_is_told_what_is_said_and_who_speaks_gets_an_ack",),
    # generate-title that never answers
    "X10": ("test_a_channel_of_few_words_has_no_title_and_that_is_said",),
    # worlds behind a route that takes them for an agent; two bodies
    "X11": ("test_agents_enter_worlds_by_either_body",),
    # participants that are dropped, because the metadata has none
    "X12": ("test_participants_come_and_go_and_nobody_else_is_dropped",),
    # userMessage in snake case only
    "X13": ("test_a_message_is_handed_in_kept_and_shown_in_both_spellings",),
    # synthesize and conversation: text or message, JSON or bytes
    "X14": (
        "test_a_message_is_spoken_by_its_id_or_its_text",
        "test_an_agent_answers_what_it_is_told",
    ),
    # a group without agentIds
    "X15": ("test_a_group_is_a_channel_for_the_agents_of_a_server",),
    # X-Entity-Id, not among the headers that pages may send
    "X16": ("test_pages_of_other_servers_may_not_ask_unless_they_are_listed",),
    # a status with half of what its type says
    "X17": ("test_the_status_has_all_that_either_side_speaks_of",),
    # a missing key as a text
    "X18": ("test_without_a_key_nobody_is_let_in_and_that_is_on_record",),
}

SCOPES: tuple[Scope, ...] = ("read", "write", "manage", "act", "operate")


def all_but(scope: Scope) -> tuple[Scope, ...]:
    left: list[Scope] = [each for each in SCOPES if each != scope]
    return tuple(left)


KEYS = WebConfig(
    port=0,
    rate_limit=0,
    upload_limit=0,
    keys={
        each: WebKeyConfig(key=Secret(f"the key without {each}"), scopes=all_but(each))
        for each in SCOPES
    },
)


def test_every_fault_is_named_with_a_test_that_there_is() -> None:
    assert list(PROVED) == [f"X{number}" for number in range(1, 19)]
    there: set[str] = set()
    for file in HERE.glob("test_*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for each in tree.body:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                there.add(each.name)
    assert {test for tests in PROVED.values() for test in tests} <= there


async def test_what_stands_beside_success_stands_in_data_too() -> None:
    async with open_web() as bed, trio.open_nursery() as nursery:
        nursery.start_soon(bed.answer_all)
        session = {"agentId": ANNA, "userId": ZOE}
        made = await bed.ask("POST", f"{API}/sessions", json=session)
        one = f"{API}/sessions/{made['sessionId']}"
        channel = await bed.channel(ZOE, ANNA)
        asked = {"content": "hello", "transport": "http"}
        cases: list[tuple[str, str, Any, str]] = [
            ("POST", f"{one}/messages", asked, "agentResponse"),
            ("POST", f"{one}/messages", {"content": "hello"}, "userMessage"),
            ("POST", f"{API}/channels/{channel}/messages", asked, "userMessage"),
            ("DELETE", one, None, "message"),
            ("GET", "/api/server/debug/servers", None, "servers"),
        ]
        for method, path, body, field in cases:
            response = await bed.client.request(method, path, json=body)
            shown = response.json()
            assert shown.pop("success") is True
            data = shown.pop("data")
            assert data == shown
            assert field in data
        nursery.cancel_scope.cancel()


async def test_an_end_is_told_by_either_body() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, ANNA)
        said = await bed.say(channel, "hello")
        for body in (
            {"channel_id": channel, "server_id": ZERO},
            {"messageId": said["id"], "status": "completed"},
        ):
            told = await bed.ask("POST", f"{API}/complete", json=body)
            assert told["channelId"] == channel
        refused = await bed.refused("POST", f"{API}/complete", json={"messageId": ZERO})
        assert refused == (400, "VALIDATION_ERROR")


async def test_a_channel_of_few_words_has_no_title_and_that_is_said() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, SAM)
        path, asked = f"{API}/channels/{channel}/generate-title", {"agentId": ANNA}
        few = await bed.ask("POST", path, json=asked)
        assert (few["title"], few["channelId"]) == (None, channel)
        assert "fewer" in few["reason"]
        for text in ("about cats", "yes", "no", "maybe"):
            await bed.say(channel, text)
        assert (await bed.ask("POST", path, json=asked))["title"] == "about cats"


async def test_what_is_done_by_an_action_is_changed() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, ANNA)
        asked = {"channelId": channel, "agentId": ANNA, "content": "looking"}
        made = await bed.ask("POST", f"{API}/action", json=asked)
        path = f"{API}/action/{made['id']}"
        changed = await bed.ask(
            "PATCH", path, json={"content": "looked", "raw_message": {"actions": ["x"]}}
        )
        assert (changed["content"], changed["rawMessage"]) == (
            "looked",
            {"actions": ["x"]},
        )
        assert changed["authorId"] == ANNA
        assert changed["updated_at"] >= changed["created_at"]
        (kept,) = await bed.messages(channel)
        assert kept["content"] == "looked"
        refused = await bed.refused("PATCH", f"{API}/action/{ZERO}", json={})
        assert refused == (404, "MESSAGE_NOT_FOUND")


async def test_the_way_of_old_releases_leads_to_the_channel_of_the_two() -> None:
    async with open_web() as bed:
        path = f"/api/agents/{ANNA}/message"
        asked = {"text": "hello", "userId": "somebody", "userName": "Zoe"}
        taken = await bed.ask("POST", path, json=asked)
        inbound = await bed.ingress.next()
        assert (inbound.agent, inbound.text) == ("anna", "hello")
        assert inbound.address.chat == taken["channelId"]
        named = {"content": "again", "roomId": taken["channelId"], "userId": "somebody"}
        again = await bed.ask("POST", path, json=named)
        assert again["channelId"] == taken["channelId"]
        assert (await bed.refused("POST", path, json={}))[0] == 400


@pytest.mark.parametrize("name", ["nonsense", ZOE])
async def test_every_route_refuses_nonsense_in_one_shape(name: str) -> None:
    async with open_web(WebConfig(port=0, rate_limit=0, upload_limit=0)) as bed:
        for method, path, _ in all_routes(bed):
            place = re.sub(r"{\w+}", name, path)
            for body in (None, {}, {"x": [1]}):
                asked: dict[str, Any] = {} if body is None else {"json": body}
                response = await bed.client.request(method, place, **asked)
                if response.status_code < 300:
                    continue
                assert response.status_code not in {405, 500}, (method, place)
                shown = response.json()
                assert shown["success"] is False, (method, place)
                error = shown["error"]
                assert {type(each) for each in error.values()} == {str}
                assert error["code"] == error["code"].upper()
                assert "Traceback" not in response.text


async def test_every_route_asks_for_a_key_with_its_scope() -> None:
    async with open_web(KEYS) as bed:
        routes = all_routes(bed)
        assert len(routes) > 100
        for method, path, scope in routes:
            place = re.sub(r"{\w+}", ZOE, path)
            if scope is None:
                continue
            assert await bed.refused(method, place) == (401, "UNAUTHORIZED")
            headers = {"X-API-KEY": f"the key without {scope}"}
            refused = await bed.refused(method, place, headers=headers)
            assert refused == (403, "FORBIDDEN"), (method, place)
        open_to_all = {path for _, path, scope in routes if scope is None}
        assert open_to_all == {
            "/api/server/ping",
            "/api/server/hello",
            "/api/server/health",
            "/api/system/config",
            "/healthz",
            "/health",
        }
