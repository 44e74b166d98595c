"""Proves who reads this program's log over the web, and that it holds no secret."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from connectors.web.eliza.platform import WebConfig, WebKeyConfig
from connectors.web.eliza.socketio.logs import (
    MOST_AT_ONCE,
    MOST_KEPT,
    LogRing,
    LogStreams,
)
from runtime.secret import Secret
from runtime.telemetry.logs import EventLog, Quoted
from tests.fakes.web.backstage import SECRET
from tests.fakes.web.eliza import ANNA, ZOE, open_web
from tests.fakes.web.eliza_client import client_of, on

LOG = EventLog("test")
LOGS = "/api/server/logs"
BROKEN = f"it broke at {SECRET}"
KEYS = WebConfig(
    port=0,
    keys={
        "chief": WebKeyConfig(key=Secret("the key of the chief"), scopes=("operate",)),
        "page": WebKeyConfig(
            key=Secret("the key of a page"), scopes=("read", "write", "manage", "act")
        ),
    },
)
CHIEF = {"X-API-KEY": "the key of the chief"}
PAGE = {"X-API-KEY": "the key of a page"}


async def test_the_newest_lines_are_given_without_secrets_and_words() -> None:
    async with open_web() as bed:
        said = Quoted("what somebody said")
        LOG.warning("it is slow", agent="anna", seconds=7, key=SECRET, text=said)
        LOG.error(BROKEN)
        found = (await bed.client.get(LOGS)).json()
        slow, broken = found["logs"]
        assert (found["count"], found["total"]) == (2, 2)
        assert slow["level"] == 40
        assert slow["msg"] == "it is slow"
        assert (slow["agentName"], slow["agentId"]) == ("anna", ANNA)
        assert (slow["seconds"], slow["key"]) == (7, "***")
        assert broken["msg"] == "it broke at ***"
        assert "said" not in str(found)


async def test_lines_are_found_by_level_agent_and_time() -> None:
    async with open_web() as bed:
        LOG.warning("one", agent="anna")
        LOG.error("two", agent="ben")
        for params, expected in (
            ({"level": "error"}, ["two"]),
            ({"level": "warn"}, ["one", "two"]),
            ({"agentName": "anna"}, ["one"]),
            ({"agentId": ANNA}, ["one"]),
            ({"limit": 1}, ["two"]),
            ({"since": 10**14}, []),
        ):
            found = (await bed.client.get(LOGS, params=params)).json()
            assert [each["msg"] for each in found["logs"]] == expected
            same = await bed.client.post(LOGS, json=params)
            assert same.json()["logs"] == found["logs"]
        refused = await bed.refused("GET", LOGS, params={"level": "loud"})
        assert refused == (400, "VALIDATION_ERROR")
        cleared = (await bed.client.delete(LOGS)).json()
        assert (cleared["status"], cleared["cleared"]) == ("success", 2)
        assert (await bed.client.get(LOGS)).json()["logs"] == []


async def test_lines_of_clients_stand_in_the_log_as_theirs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with open_web() as bed:
        given = [{"level": "error", "message": f"no {SECRET}", "source": "gui"}]
        taken = await bed.ask("POST", LOGS, json={"logs": given})
        assert taken == {"received": 1}
        (line,) = (await bed.client.get(LOGS)).json()["logs"]
        assert (line["msg"], line["source"]) == ("client says", "gui")
        assert line["text"] == "no ***"
        bad = {"logs": [{"level": "loud", "message": "x"}]}
        assert (await bed.refused("POST", LOGS, json=bad))[0] == 400
    assert caplog.records[-1].levelno == logging.ERROR


async def test_only_who_operates_the_program_reads_its_log() -> None:
    async with open_web(KEYS) as bed:
        for way in ("GET", "POST", "DELETE"):
            assert await bed.refused(way, LOGS, headers=PAGE) == (403, "FORBIDDEN")
        assert (await bed.client.get(LOGS, headers=CHIEF)).status_code == 200


async def test_who_may_not_read_the_log_is_told_no_lines() -> None:
    key = "the key of a page"
    async with open_web(KEYS) as bed, client_of(bed, ZOE, key=key) as page:
        await on(bed, page.emit, "subscribe_logs", None)
        told = await on(bed, page.next, "log_subscription_confirmed")
        assert (told["subscribed"], "operate" in told["message"]) == (False, True)
        await on(bed, page.emit, "update_log_filters", {"level": "warn"})
        told = await on(bed, page.next, "log_filters_updated")
        assert told["success"] is False


async def test_filters_are_in_force_from_then_on() -> None:
    async with open_web() as bed, client_of(bed) as chief:
        await on(bed, chief.emit, "subscribe_logs", None)
        assert (await on(bed, chief.next, "log_subscription_confirmed"))["subscribed"]
        LOG.warning("first", key=SECRET)
        line = await on(bed, chief.next, "log_stream")
        assert line["type"] == "log_entry"
        assert (line["payload"]["msg"], line["payload"]["key"]) == ("first", "***")
        for bad in ({"level": "loud"}, {"agentName": 7}, "all"):
            await on(bed, chief.emit, "update_log_filters", bad)
            told = await on(bed, chief.next, "log_filters_updated")
            assert told["success"] is False
        wanted = {"level": "error", "agentName": "anna"}
        await on(bed, chief.emit, "update_log_filters", wanted)
        told = await on(bed, chief.next, "log_filters_updated")
        assert told == {"success": True, "filters": wanted}
        LOG.warning("left out", agent="anna")
        LOG.error("left out", agent="ben")
        LOG.error("second", agent="anna")
        line = await on(bed, chief.next, "log_stream")
        assert line["payload"]["msg"] == "second"


async def test_whoever_leaves_the_log_hears_no_more_of_it() -> None:
    async with open_web() as bed, client_of(bed) as chief:
        await on(bed, chief.emit, "subscribe_logs", None)
        await on(bed, chief.next, "log_subscription_confirmed")
        await on(bed, chief.emit, "unsubscribe_logs", None)
        told = await on(bed, chief.next, "log_subscription_confirmed")
        assert told["subscribed"] is False
        LOG.error("unheard")
        await on(bed, chief.emit, "subscribe_logs", None)
        await on(bed, chief.next, "log_subscription_confirmed")
        LOG.error("heard again")
        line = await on(bed, chief.next, "log_stream")
        assert line["payload"]["msg"] == "heard again"


async def test_a_flood_of_lines_is_cut_and_says_so() -> None:
    ring, told = LogRing(str), list[Any]()
    with ring.filling():
        async with open_web() as bed:

            async def flood() -> None:
                streams = LogStreams(ring, lambda _, line: told.append(line))
                streams.subscribe("one")
                for number in range(2 * MOST_KEPT):
                    LOG.warning("line", number=number)
                streams._flush()
                streams.stop()

            await bed.bridge.call(flood)
    lines = [each["payload"] for each in told]
    assert len(lines) == MOST_AT_ONCE + 1
    assert lines[0]["msg"] == f"{2 * MOST_KEPT - MOST_AT_ONCE} lines left out"
    assert lines[-1]["number"] == 2 * MOST_KEPT - 1
    assert len(ring.entries()) == MOST_KEPT


class Odd:
    """Has no words."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_nobody_fails_by_a_line_that_cannot_be_written() -> None:
    ring = LogRing(str)
    for text, args in (("%(missing)s", ({"a": 1},)), ("%s", (Odd(),))):
        record = logging.LogRecord("x", logging.INFO, "x.py", 1, text, args, None)
        ring.emit(record)
    assert ring.entries() == []
