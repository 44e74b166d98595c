"""What homeservers say of the rooms of an account, as far as it can be read."""

from __future__ import annotations

import msgspec

from connectors.chat.loose_json import Json, table, tables, text


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
