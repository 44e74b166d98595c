"""Writes the task that an agent gets from an incoming webhook; pure.

The task itself is the operator's, from the settings. The payload follows in a frame
that marks it as data and that the payload cannot close: a stranger who can influence it
(a commit message, an issue title) must not be able to give the agent orders.
"""

from __future__ import annotations

import re
from typing import cast

import msgspec

from actors.rules.prompt.tools import bound
from actors.rules.prompt.untrusted import frame
from actors.rules.text.cleaning import clean, one_line
from runtime.store.text import why_no_json

NOT_THERE = "(not there)"
EVENT = re.compile(r"[\w.:/-]{1,80}")


class WebhookPayload(msgspec.Struct, frozen=True, kw_only=True):
    """The payload of an incoming webhook."""

    webhook: str
    event: str
    """Name of the event, as shown and filtered; empty: unknown."""

    payload: object
    """The decoded body."""


class NoJsonError(ValueError):
    """The body is not JSON; the text says why."""


def read(webhook: str, event: str, body: bytes) -> WebhookPayload:
    """Decode a body.

    Args:
        event: from a header; empty: the body's `type`.

    Raises:
        NoJsonError: it is not JSON.
    """
    try:
        payload: object = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NoJsonError(
            f"the body is no JSON: {one_line(why_no_json(body, error), 200)}"
        ) from error
    found = event or at(payload, "type")
    action = at(payload, "action") if event else ""
    # GitHub has the event in a header and what happened to it in the body.
    name = f"{found}.{action}" if isinstance(action, str) and action else found
    is_name = isinstance(name, str) and EVENT.fullmatch(name)
    return WebhookPayload(
        webhook=webhook, event=str(name) if is_name else "", payload=payload
    )


def at(payload: object, path: str) -> object:
    """Find a field by its path, such as `repository.full_name`; "" if it is missing."""
    found = payload
    for name in path.split("."):
        if not isinstance(found, dict):
            return ""
        fields = cast("dict[str, object]", found)
        if name not in fields:
            return ""
        found = fields[name]
    return found


def task_text(
    key: bytes, task: str, told: WebhookPayload, fields: tuple[str, ...], most: int
) -> str:
    """Write the task.

    Args:
        key: key of frames around untrusted text.
        task: what the operator wants done.
        fields: paths of what the agent sees of it; none: all of it.
        most: most characters of that.
    """
    event = f", event {told.event}" if told.event else ""
    head = (
        f"(Webhook {told.webhook}{event}. A program sent this; nobody wrote it. Do what"
        " follows, and say what came of it; if nothing is to be said, answer NO_REPLY.)"
    )
    shown = bound(clean(_shown(told.payload, fields), 20 * most), most)
    framed = frame(key, "what the webhook brought", shown)
    return f"{head}\n{task.strip()}\n{framed}"


def _shown(payload: object, fields: tuple[str, ...]) -> str:
    if not fields:
        return _json(payload)
    return "\n".join(f"{path}: {_field(payload, path)}" for path in fields)


def _field(payload: object, path: str) -> str:
    found = at(payload, path)
    return NOT_THERE if found == "" else _json(found)


def _json(value: object) -> str:
    # A plain text stays as it is: as JSON its line ends would show as \n.
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
