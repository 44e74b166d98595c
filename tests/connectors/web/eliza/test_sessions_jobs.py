"""Proves that sessions last as they should, and that jobs complete."""

from __future__ import annotations

import pytest
import trio
from hypothesis import given, strategies as st

from connectors.web.eliza.platform import WebConfig
from connectors.web.eliza.request import read_body_as
from connectors.web.eliza.services.sessions import (
    MINUTE,
    SessionBody,
    SessionTimeouts,
    span,
)
from connectors.web.server import ApiError
from tests.fakes.store.in_memory import MemoryStore
from tests.fakes.web.eliza import ANNA, API, BEN, ZOE, WebBed, open_web, reply

SESSION = {"agentId": ANNA, "userId": ZOE, "metadata": {"platform": "test"}}
JOB = {"userId": ZOE, "content": "what?", "agentId": ANNA}


@given(
    uses=st.lists(st.integers(0, 90 * MINUTE), max_size=20),
    minutes=st.integers(5, 60),
    most=st.integers(10, 300),
)
def test_a_session_is_renewed_by_use_and_never_beyond_its_whole_time(
    uses: list[int], minutes: int, most: int
) -> None:
    timeouts = SessionTimeouts(timeout_minutes=minutes, max_duration_minutes=most)
    now, lasts = 0, span(0, timeouts)
    for gap in uses:
        now += gap
        if lasts.is_over(now):
            break
        lasts = lasts.used(now)
        assert now < lasts.expires_at <= most * MINUTE
        assert lasts.expires_at == min(now + minutes * MINUTE, most * MINUTE)


async def test_a_session_answers_in_http_mode_with_data_and_without() -> None:
    async with open_web() as bed, trio.open_nursery() as nursery:
        nursery.start_soon(bed.answer_all)
        made = await bed.ask("POST", f"{API}/sessions", json=SESSION)
        assert made["agentId"] == ANNA
        assert made["timeoutConfig"]["timeoutMinutes"] == 30
        path = f"{API}/sessions/{made['sessionId']}"
        asked = {"content": "hello", "transport": "http"}
        response = await bed.client.post(f"{path}/messages", json=asked)
        body = response.json()
        assert body["data"]["agentResponse"] == body["agentResponse"]
        assert body["agentResponse"]["text"] == "you said: hello"
        assert body["sessionStatus"]["renewalCount"] >= 0
        page = await bed.ask("GET", f"{path}/messages", params={"limit": 1})
        assert page["hasMore"]
        assert page["messages"][0]["isAgent"]
        older = {"before": str(page["cursors"]["before"])}
        page = await bed.ask("GET", f"{path}/messages", params=older)
        assert [each["content"] for each in page["messages"]] == ["hello"]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("body", "field", "told"),
    [
        ({"userId": ZOE}, "agentId", "is missing"),
        ({"agentId": ANNA, "userId": "x"}, "userId", "is no UUID"),
        ({"agent_id": ANNA, "user_id": "x"}, "user_id", "is no UUID"),
        (
            {**SESSION, "timeoutConfig": {"autoRenew": 5}},
            "timeoutConfig.autoRenew",
            "Expected `bool`, got `int`",
        ),
    ],
)
def test_a_wrong_field_is_named_as_it_was_sent(
    body: dict[str, object], field: str, told: str
) -> None:
    with pytest.raises(ApiError) as caught:
        read_body_as(body, SessionBody)
    assert (caught.value.param, caught.value.text) == (field, told)


async def test_a_session_is_listed_renewed_and_deleted() -> None:
    async with open_web() as bed:
        made = await bed.ask("POST", f"{API}/sessions", json=SESSION)
        path = f"{API}/sessions/{made['sessionId']}"
        config = {"timeoutConfig": {"timeoutMinutes": 5, "autoRenew": False}}
        changed = await bed.ask("PATCH", f"{path}/timeout", json=config)
        assert changed["timeoutConfig"]["timeoutMinutes"] == 5
        assert await bed.ask("POST", f"{path}/heartbeat")
        listed = await bed.ask("GET", f"{API}/sessions")
        assert (listed["total"], listed["stats"]["activeSessions"]) == (1, 1)
        assert (await bed.ask("GET", f"{API}/sessions/health"))["activeSessions"] == 1
        assert "deleted" in (await bed.ask("DELETE", path))["message"]
        assert await bed.refused("GET", path) == (404, "SESSION_NOT_FOUND")
        nobody = SESSION | {"agentId": ZOE}
        refused = await bed.refused("POST", f"{API}/sessions", json=nobody)
        assert refused == (404, "AGENT_NOT_FOUND")
        bad = SESSION | {"metadata": {"x": "y" * 10_240}}
        refused = await bed.refused("POST", f"{API}/sessions", json=bad)
        assert refused == (400, "VALIDATION_ERROR")


async def job_of(bed: WebBed, job_id: str) -> tuple[str, str]:
    """Give the status and what it has come to."""
    shown = await bed.ask("GET", f"{API}/jobs/{job_id}")
    result = shown.get("result", {"message": {"content": ""}})
    return shown["status"], str(shown.get("error") or result["message"]["content"])


async def test_a_job_completes_by_what_its_agent_says() -> None:
    async with open_web() as bed:
        made = await bed.ask("POST", f"{API}/jobs", json=JOB)
        assert made["status"] == "processing"
        inbound = await bed.ingress.next()
        assert inbound.agent == "anna"
        await bed.answer(inbound, "Executing action: LOOK")
        assert await job_of(bed, made["jobId"]) == ("processing", "")
        await bed.answer(inbound, "that")
        assert await job_of(bed, made["jobId"]) == ("completed", "that")
        listed = await bed.ask("GET", f"{API}/jobs", params={"status": "completed"})
        assert (listed["total"], listed["filtered"]) == (1, 1)
        health = await bed.ask("GET", f"{API}/jobs/health")
        assert health["statusCounts"]["completed"] == 1
        assert health["metrics"]["successRate"] == 1


async def test_a_job_completes_by_what_an_agent_elsewhere_submits() -> None:
    async with open_web() as bed:
        made = await bed.ask("POST", f"{API}/jobs", json=JOB | {"agentId": BEN})
        inbound = await bed.ingress.next()
        asked = {
            "channel_id": inbound.address.chat,
            "author_id": BEN,
            "content": "from afar",
            "source_type": "agent_response",
            "raw_message": {"text": "from afar"},
        }
        await bed.ask("POST", f"{API}/submit", json=asked)
        assert await job_of(bed, made["jobId"]) == ("completed", "from afar")


async def test_a_job_without_an_answer_fails() -> None:
    async with open_web() as bed:
        made = await bed.ask("POST", f"{API}/jobs", json=JOB)
        inbound = await bed.ingress.next()
        await bed.transport.settle(inbound, "dead")
        status, error = await job_of(bed, made["jobId"])
        assert status == "failed"
        assert "no answer" in error


async def test_a_job_is_completed_by_an_answer_that_comes_after_a_restart() -> None:
    store = MemoryStore()
    async with open_web(store=store) as bed:
        made = await bed.ask("POST", f"{API}/jobs", json=JOB)
        inbound = await bed.ingress.next()
    async with open_web(store=store.reopened()) as bed:
        await bed.transport.deliver(reply(inbound, "late, and here"))
        assert await job_of(bed, made["jobId"]) == ("completed", "late, and here")


async def test_ended_jobs_make_way_and_those_under_way_do_not() -> None:
    async with open_web(WebConfig(port=0, max_jobs=1)) as bed:
        nobody = JOB | {"agentId": ZOE}
        refused = await bed.refused("POST", f"{API}/jobs", json=nobody)
        assert refused == (404, "AGENT_NOT_FOUND")
        await bed.ask("POST", f"{API}/jobs", json=JOB)
        refused = await bed.refused("POST", f"{API}/jobs", json=JOB)
        assert refused == (429, "LIMIT_REACHED")
        await bed.answer(await bed.ingress.next(), "done")
        await bed.ask("POST", f"{API}/jobs", json=JOB)
        assert (await bed.ask("GET", f"{API}/jobs"))["total"] == 1
