"""Reads JSON that nobody has checked: whatever is missing or odd is simply empty.

Anybody in a room can send an event of any shape, and homeservers pass it on.
"""

from __future__ import annotations

import json
from typing import cast

import msgspec

Json = dict[str, object]


class News(msgspec.Struct, frozen=True):
    """What happened in one room since the last batch."""

    state: tuple[Json, ...] = ()
    """Changes of the room that came before `timeline`."""

    timeline: tuple[Json, ...] = ()
    """Oldest first."""

    is_limited: bool = False
    """Whether more happened than stands in `timeline`."""

    before: str = ""
    """From where what is missing can be fetched, backwards."""


class Batch(msgspec.Struct, frozen=True):
    """One answer of `/sync`."""

    next_batch: str
    joined: dict[str, News]
    invited: dict[str, tuple[Json, ...]]
    """By room: what an invited account may know of it."""

    left: tuple[str, ...]
    """Rooms that the account is no longer in."""


def decode(body: bytes) -> Json:
    """Read a JSON object; a list comes as its `chunk`, as answers in pages have it.

    Raises:
        ValueError: it is neither.
    """
    try:
        found: object = msgspec.json.decode(body)
    except msgspec.DecodeError:
        # Why: it refuses halves of characters, with which one event of one stranger
        # would stop a whole account. `text` makes them whole.
        found = json.loads(body)
    if isinstance(found, list):
        return {"chunk": cast("list[object]", found)}
    if isinstance(found, dict):
        return cast("Json", found)
    raise ValueError("it is no JSON object")


def table(value: object) -> Json:
    """Give an object; empty if it is none."""
    return cast("Json", value) if isinstance(value, dict) else {}


def tables(value: object) -> tuple[Json, ...]:
    """Give the objects of a list."""
    if not isinstance(value, list):
        return ()
    found = cast("list[object]", value)
    return tuple(cast("Json", each) for each in found if isinstance(each, dict))


def text(value: object) -> str:
    """Give a text that can be stored; empty if it is none."""
    if not isinstance(value, str):
        return ""
    return value if value.isascii() else value.encode(errors="replace").decode()


def texts(value: object) -> tuple[str, ...]:
    """Give the texts of a list."""
    if not isinstance(value, list):
        return ()
    found = cast("list[object]", value)
    return tuple(text(each) for each in found if isinstance(each, str))


def whole(value: object) -> int:
    """Give a whole number; 0 if it is none, or beyond what a counter holds."""
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if abs(value) < 1 << 53 else 0


def read_batch(answer: Json) -> Batch:
    """Read what `/sync` said.

    Raises:
        ValueError: it does not say how to go on.
    """
    next_batch = text(answer.get("next_batch"))
    if not next_batch:
        raise ValueError("it has no next_batch")
    rooms = table(answer.get("rooms"))
    joined, invited = table(rooms.get("join")), table(rooms.get("invite"))
    return Batch(
        next_batch=next_batch,
        joined={room: read_news(table(said)) for room, said in joined.items()},
        invited={
            room: tables(table(table(said).get("invite_state")).get("events"))
            for room, said in invited.items()
        },
        left=tuple(table(rooms.get("leave"))),
    )


def read_news(said: Json) -> News:
    """Read what `/sync` said of one room."""
    timeline = table(said.get("timeline"))
    return News(
        state=tables(table(said.get("state")).get("events")),
        timeline=tables(timeline.get("events")),
        is_limited=timeline.get("limited") is True,
        before=text(timeline.get("prev_batch")),
    )
