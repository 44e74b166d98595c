"""Every platform's transport counts what becomes of messages, and says if it is up."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pytest
import trio.testing

from actors.errors import MessageRefusedError, OverloadedError
from tests.contracts.test_transport_platforms import stop
from tests.contracts.transports import answer, ask, wait_until
from tests.fakes.chat.stages import open_stage
from tests.fakes.company.company import counted

if TYPE_CHECKING:
    from tests.fakes.chat.stages import Stage

COUNTED: dict[str, dict[str, int]] = {
    "discord": {"handed_in": 4, "own": 4, "refused": 1},
    "matrix": {"handed_in": 4, "own": 4, "refused": 1},
    "qq": {"handed_in": 4, "refused": 1},
    "slack": {"handed_in": 4, "own": 4, "refused": 1},
    "telegram": {"handed_in": 4, "refused": 1},
    "whatsapp": {"handed_in": 2, "refused": 1, "seen": 1, "waits": 1},
}
"""Events by what became of them: one is answered, one is a stranger's, one is too long,
one comes while there is too much to do, and one is answered again. What an agent says
comes back to some."""

TIMES = {"matrix": "synced", "telegram": "polled"}
"""What the time is called of which a platform was heard last, where not `heard`."""


def lines_of(stage: Stage, name: str) -> dict[str, float]:
    """Give what is counted for the platform, without the labels that are always so."""
    metrics = cast("Any", stage).bed.metrics
    found: dict[str, float] = {}
    for line in counted(metrics, name):
        what, _, value = line.removeprefix(f"{name}_").rpartition(" ")
        labels = f'account="anna",connector="{name}"'
        assert labels in what
        found[what.replace(labels, "").replace("{}", "")] = float(value)
    return found


def is_shown(stage: Stage, text: str) -> bool:
    return text in stage.shown()


async def play(stage: Stage) -> None:
    """Have messages come that are taken, and some that are not."""
    first = await ask(stage, "hello")
    await stage.transport.deliver(answer(first, "Here."))
    await wait_until(stage, lambda: "Here." in stage.shown())
    stage.ingress.strangers.add(first.sender_id)
    await stage.write("let me in")
    await wait_until(stage, lambda: len(stage.ingress.turned_away) == 1)
    stage.ingress.strangers.clear()
    for error in (
        MessageRefusedError("it is too long for us"),
        OverloadedError("too much at once"),
    ):
        stage.ingress.error = error
        await stage.write(f"to be {error}")
        await wait_until(stage, partial(is_shown, stage, str(error)))
    stage.ingress.error = None
    last = await ask(stage, "and now")
    await stage.transport.deliver(answer(last, "There."))
    await wait_until(stage, lambda: "There." in stage.shown())
    await trio.testing.wait_all_tasks_blocked()


@pytest.mark.parametrize("name", COUNTED)
async def test_what_becomes_of_messages_is_counted(name: str) -> None:
    async with open_stage(name) as stage:
        await play(stage)
        kind = "updates" if name == "telegram" else "events"
        told = lines_of(stage, name)
        assert told.pop(f"{TIMES.get(name, 'heard')}_timestamp_seconds") > 1.6e9
        assert told.pop("up") == 1
        assert told == {
            f'{kind}_total{{,outcome="{outcome}"}}': count
            for outcome, count in COUNTED[name].items()
        }
        await stop(stage)
        assert "up" not in lines_of(stage, name)


LOCAL = {
    "page": (
        'http_requests_total{status="202"} 2.0',
        'http_requests_total{status="303"} 1.0',
        'http_requests_total{status="400"} 1.0',
        'http_requests_total{status="403"} 1.0',
        'http_requests_total{status="429"} 1.0',
        "page_logins_total 1.0",
        'page_refused_total{reason="not_admitted"} 1.0',
        'page_refused_total{reason="overloaded"} 1.0',
        "page_sessions 1.0",
    ),
    "web": (
        'web_requests_total{route="channels",status="201"} 1.0',
        'web_requests_total{route="channels/messages",status="200"} 2.0',
        'web_requests_total{route="channels/messages",status="400"} 1.0',
        'web_requests_total{route="channels/messages",status="403"} 1.0',
        'web_requests_total{route="channels/messages",status="429"} 1.0',
        'web_told_total{event="messageBroadcast"} 4.0',
        'web_told_total{event="messageComplete"} 2.0',
    ),
    "websocket": (
        'websocket_ended_total{why="refused"} 1.0',
        'websocket_frames_total{outcome="busy"} 1.0',
        'websocket_frames_total{outcome="hello"} 1.0',
        'websocket_frames_total{outcome="message"} 2.0',
        'websocket_frames_total{outcome="not_admitted"} 1.0',
        'websocket_frames_total{outcome="refused"} 1.0',
        'websocket_told_total{type="error"} 3.0',
        'websocket_told_total{type="message"} 2.0',
        'websocket_told_total{type="received"} 2.0',
        'websocket_told_total{type="welcome"} 1.0',
    ),
}
"""What our own servers count of the same, less the connector's name."""

OPEN = {
    "page": "page_streams 1.0",
    "websocket": "websocket_connected 1.0",
}
"""What they count only as long as somebody is there."""


def own_lines(stage: Stage, name: str) -> list[str]:
    """Give what is counted, without the connector's name."""
    own = f'connector="{name}"'
    lines = counted(cast("Any", stage).bed.metrics)
    return [line.replace(f"{own},", "").replace(f"{{{own}}}", "") for line in lines]


@pytest.mark.parametrize("name", LOCAL)
async def test_what_is_asked_of_our_own_servers_is_counted(name: str) -> None:
    async with open_stage(name) as stage:
        await play(stage)
        assert name not in OPEN or OPEN[name] in own_lines(stage, name)
        await stop(stage)
        lines = own_lines(stage, name)
        assert set(LOCAL[name]) <= set(lines)
        assert OPEN.get(name) not in lines
        if name != "page":
            moved = [each for each in lines if each.startswith(f"{name}_bytes_total")]
            assert [each.split('"')[1] for each in moved] == ["in", "out"]
