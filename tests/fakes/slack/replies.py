"""What a `FakeSlack` answers, as Slack words it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

Json = dict[str, Any]

TEAM = "T1"
NOT_FOUND = "channel_not_found"


class Reply(NamedTuple):
    """What a method answers."""

    status: int
    said: Json
    headers: Mapping[str, str] = MappingProxyType({})


def refusal(code: str, status: int = 200, **headers: str) -> Reply:
    """Answer with an error, as Slack does."""
    return Reply(status, {"ok": False, "error": code}, headers)


def ok(said: Json, headers: dict[str, str] | None = None) -> Reply:
    """Answer that it was done."""
    return Reply(200, {"ok": True, **said}, headers or {})


def is_top(message: Json) -> bool:
    """Tell whether a message stands in the channel itself."""
    return bool(message.get("thread_ts", message["ts"]) == message["ts"])


def event_body(event: Json, event_id: str) -> Json:
    """Write an event as the Events API tells of it."""
    return {
        "type": "event_callback",
        "team_id": TEAM,
        "api_app_id": "A1",
        "event_id": event_id,
        "event_time": 1,
        "event": event,
    }


def pressed(message: Json, channel: str, user: str, action: Json) -> Json:
    """Write a pressed button as Slack tells of it."""
    return {
        "type": "block_actions",
        "team": {"id": TEAM, "domain": "crew"},
        "user": {"id": user, "username": "zoe", "name": "zoe", "team_id": TEAM},
        "api_app_id": "A1",
        "container": {
            "type": "message",
            "message_ts": message["ts"],
            "channel_id": channel,
            "is_ephemeral": False,
        },
        "trigger_id": f"{message['ts']}.8088",
        "channel": {"id": channel, "name": "crew"},
        "message": message,
        "response_url": "https://hooks.slack.com/actions/T1/1/x",
        "actions": [{**action, "action_ts": message["ts"]}],
    }


def page(messages: list[Json], form: dict[str, str]) -> Reply:
    """Give one page of messages."""
    oldest = form.get("oldest", "0")
    newer = [m for m in messages if float(m["ts"]) > float(oldest)]
    start, limit = int(form.get("cursor") or 0), int(form.get("limit", "100"))
    rest = newer[start:]
    following = str(start + limit) if len(rest) > limit else ""
    said: Json = {"messages": msgspec.to_builtins(rest[:limit])}
    if form.get("include_all_metadata") != "true":
        said["messages"] = [
            {name: each for name, each in m.items() if name != "metadata"}
            for m in said["messages"]
        ]
    return ok({**said, "response_metadata": {"next_cursor": following}})
