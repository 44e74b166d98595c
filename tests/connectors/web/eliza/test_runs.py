"""Proves what is told of agents' runs, to whom, and in which shape."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import structs

from actors.journal.commits import as_accept
from actors.journal.records import UsageRecord
from actors.messages.inbound import Address, Inbound, ToolCall, Usage
from actors.messages.keys import session_key
from actors.messages.usage import Spent
from actors.turn.machine import ModelReplied, ToolReturned
from connectors.web.eliza.messages import as_uuid, own_id
from connectors.web.eliza.platform import WebConfig, WebKeyConfig
from runtime.secret import Secret
from runtime.store.rows import Append, Claim, Commit, NewEvent, Record, Settle
from tests.fakes.web.eliza import ANNA, BEN, SAM, ZERO, ZOE, WebBed, open_web

KEYS = WebConfig(
    port=0,
    api_key=Secret("the key of all"),
    keys={"zoe": WebKeyConfig(key=Secret("the key of zoe"), entity=ZOE)},
)
BOSS = {"X-API-KEY": "the key of all"}
ZOES = {"X-API-KEY": "the key of zoe"}
RUNS = f"/api/agents/{ANNA}/runs"
LOGS = f"/api/agents/{ANNA}/logs"
SECRETS = b'{"path": "diary.txt"}'


def asked(bed: WebBed, channel: str, sender: str = ZOE) -> Inbound:
    """Make a message as the web channel hands it in."""
    ids = bed.company.services.ids
    return Inbound(
        id=ids.new(),
        platform="web",
        platform_id=as_uuid(ids.new()),
        address=Address("web", channel),
        sender_id=sender,
        sender_name="Zoe",
        text="what is in my diary?",
        received_at=bed.company.services.clock.wall(),
        agent="anna",
        present=("anna",),
    )


async def run(bed: WebBed, channel: str, state: Any = "replied") -> str:
    """Have Anna read a file and answer; gives the id of the run."""
    inbound, at = asked(bed, channel), bed.company.services.clock.wall()
    store = bed.company.store
    await store.commit(Commit(at=at, accepts=(as_accept(inbound, at),)))
    await store.commit(Commit(at=at, claims=(Claim(inbound.id, 1),)))
    call = ToolCall("c1", "read_file", SECRETS)
    steps = (
        ("round", ModelReplied("", (call,), Usage(10, 5), spent=SPENT)),
        ("tool", ToolReturned("c1", "dear diary", is_error=True)),
    )
    events = tuple(NewEvent(kind, msgspec.json.encode(each)) for kind, each in steps)
    stream = f"{session_key(inbound, 'anna', 'chat').text}/{inbound.id}"
    append = Append(
        stream=stream, expected=0, part=1, events=events, inbox_id=inbound.id
    )
    await store.commit(Commit(at=at + 1, appends=(append,)))
    if state == "accepted":
        return as_uuid(inbound.id)
    settle, row = Settle(inbound.id, state, "ok"), used(inbound, state)
    await store.commit(Commit(at=at + 2, settles=(settle,), records=(row,)))
    return as_uuid(inbound.id)


EVENTS = [
    "RUN_STARTED",
    "MODEL_USED",
    "ACTION_STARTED",
    "ACTION_COMPLETED",
    "MODEL_USED",
    "RUN_ENDED",
]
SPENT = tuple(
    Spent(provider=provider, model=f"{provider}-1", account="")
    for provider in ("first", "second")
)
"""The first model did not answer; the second one did."""


def used(inbound: Inbound, status: str) -> Record:
    body = UsageRecord(
        agent="anna",
        connector="web",
        sender_id=inbound.sender_id,
        provider="main",
        model="m-1",
        input_tokens=30,
        output_tokens=12,
        cost=0.5,
        seconds=2.0,
        rounds=2,
        attempt=1,
        status=status,
    )
    name = f"{inbound.id}#1"
    encoded = msgspec.json.encode(body)
    return Record(kind="usage", id=name, owner="anna", part=1, body=encoded)


async def test_a_run_tells_what_was_used_and_nothing_of_the_words() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, ANNA)
        run_id = await run(bed, channel)
        listed = await bed.ask("GET", RUNS, params={"roomId": channel})
        (summary,) = listed["runs"]
        assert (listed["total"], listed["hasMore"]) == (1, False)
        assert summary["runId"] == run_id
        assert summary["status"] == "completed"
        assert summary["durationMs"] == 2000
        assert summary["roomId"] == own_id(ANNA, channel)
        assert summary["counts"] == {
            "actions": 1,
            "modelCalls": 2,
            "errors": 1,
            "evaluators": 0,
        }
        assert summary["metadata"]["costUsd"] == 0.5
        response = await bed.client.get(f"{RUNS}/{run_id}")
        detail = response.json()["data"]
        model = detail["events"][1]["data"]
        assert (model["provider"], model["modelName"]) == ("second", "second-1")
        assert detail["summary"] == summary
        assert [each["type"] for each in detail["events"]] == EVENTS
        assert "diary" not in response.text


async def test_runs_are_found_by_their_status_time_and_number() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, ANNA)
        done = await run(bed, channel)
        open_ = await run(bed, channel, "accepted")
        dead = await run(bed, channel, "dead")
        for params, expected in (
            ({}, [dead, open_, done]),
            ({"status": "started"}, [open_]),
            ({"status": "error"}, [dead]),
            ({"limit": 2}, [dead, open_]),
            ({"from": 10**14}, []),
            ({"to": 1}, []),
        ):
            found = await bed.ask("GET", RUNS, params=params)
            assert [each["runId"] for each in found["runs"]] == expected
            assert found["hasMore"] == (params == {"limit": 2})
        other = await bed.ask("GET", f"/api/agents/{BEN}/runs")
        assert other["runs"] == []


async def test_a_message_that_waits_is_the_run_of_whoever_alone_has_heard_it() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, ANNA)
        at = bed.company.services.clock.wall()
        alone = ""
        for present in (("anna",), ("anna", "ben"), ()):
            heard = structs.replace(asked(bed, channel), agent="", present=present)
            await bed.company.store.commit(
                Commit(at=at, accepts=(as_accept(heard, at),))
            )
            if present == ("anna",):
                alone = as_uuid(heard.id)
        found = await bed.ask("GET", RUNS)
        assert [each["runId"] for each in found["runs"]] == [alone]


async def test_runs_of_a_channel_that_a_key_may_not_see_are_not_shown() -> None:
    async with open_web(KEYS) as bed:
        bed.client.headers.update(BOSS)
        other = await bed.channel(SAM, ANNA)
        run_id = await run(bed, other)
        bed.client.headers.update(ZOES)
        assert (await bed.ask("GET", RUNS))["runs"] == []
        assert await bed.ask("GET", LOGS) == []
        refused = await bed.refused("GET", f"{RUNS}/{run_id}")
        assert refused == (404, "RUN_NOT_FOUND")
        for path in (RUNS, LOGS, f"{RUNS}/{run_id}"):
            refused = await bed.refused("GET", path, params={"roomId": other})
            assert refused == (403, "FORBIDDEN")


async def test_an_agents_log_tells_the_same_in_entries() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, ANNA)
        await run(bed, channel)
        every = await bed.ask("GET", LOGS, params={"roomId": channel})
        assert [each["type"] for each in every] == [
            "run_event",
            "useModel:TEXT_LARGE",
            "action",
            "action",
            "useModel:TEXT_LARGE",
            "run_event",
        ]
        assert len({each["id"] for each in every}) == len(every)
        assert every[1]["body"]["usage"]["total_tokens"] == 42
        for params, count in (
            ({"type": "useModel"}, 2),
            ({"excludeTypes": "run_event,action"}, 2),
            ({"count": 3, "offset": 4}, 2),
            ({"search": "READ_FILE"}, 2),
        ):
            assert len(await bed.ask("GET", LOGS, params=params)) == count
        refused = await bed.refused("DELETE", f"{LOGS}/{every[0]['id']}")
        assert refused == (409, "LOG_IS_HISTORY")


async def test_what_no_run_can_be_is_refused() -> None:
    async with open_web() as bed:
        for path, expected in (
            (f"{RUNS}?status=lost", (400, "VALIDATION_ERROR")),
            (f"{RUNS}?roomId=7", (400, "VALIDATION_ERROR")),
            (f"{RUNS}?from=soon", (400, "VALIDATION_ERROR")),
            (f"{RUNS}/7", (400, "VALIDATION_ERROR")),
            (f"{RUNS}/{ZERO}", (404, "RUN_NOT_FOUND")),
            (f"/api/agents/{ZOE}/runs", (404, "AGENT_NOT_FOUND")),
        ):
            assert await bed.refused("GET", path) == expected
