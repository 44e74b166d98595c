"""The state of the company at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import names
from connectors.admin.overview import ACCEPTED, WaitingCounts, read_waiting, sum_figures
from connectors.web.page.views.base import View, read_view
from runtime.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from connectors.web.page.views.base import Look, ViewRequest, ViewValues
    from runtime.actor.statistics import ActorStatistics

MOST_FAILURES = 10
"""Most failed actors, and most dead letters, that the page lists."""


class Account(msgspec.Struct, frozen=True):
    """The state of a connector."""

    name: str
    kind: str
    state: str
    restarts: int
    messages: int
    """Accepted since the start."""

    last_end: str


class Failure(msgspec.Struct, frozen=True):
    """Something that went wrong."""

    who: str
    what: str
    times: int


async def load(asked: ViewRequest) -> ViewValues:
    """Show the overview."""
    inside = asked.inside
    reasons = await inside.readiness()
    values = await read_view(asked, read)
    accepted = values["accepted"]
    now = inside.services.clock.monotonic()
    pace = inside.pace.look(accepted if isinstance(accepted, int) else 0, now)
    redact = inside.services.redact
    return {**values, "reasons": list(map(redact, reasons)), "pace": pace}


def read(look: Look) -> ViewValues:
    """Read metrics, actors and the queue."""
    inside = look.inside
    actors = inside.system.actors()
    waiting, trouble = waiting_of(look)
    sums = sum_figures(inside.metrics.figures())
    return {
        "sums": sums,
        "accepted": sums.messages.get(ACCEPTED, 0),
        "waiting": waiting,
        "open": 0 if waiting is None else waiting.open,
        "unsaid": 0 if waiting is None else waiting.unsaid,
        "dead": 0 if waiting is None else waiting.dead,
        "trouble": trouble,
        "turns": sum(each.kind == "Turn" for each in actors),
        "accounts": accounts(look, actors, sums.connectors),
        "failures": failures(actors),
        "letters": letters(look),
        "now": look.now,
    }


def waiting_of(look: Look) -> tuple[WaitingCounts | None, str]:
    """Count waiting messages; or give the error."""
    try:
        with look.database.inspect() as rows:
            return read_waiting(rows), ""
    except StoreError as error:
        return None, str(error)


def accounts(
    look: Look, actors: Sequence[ActorStatistics], brought: Mapping[str, int]
) -> list[Account]:
    """Give the state of each connector, with its number of messages."""
    by_name = {each.name: each for each in actors}
    found: list[Account] = []
    for name, config in look.config.connectors.items():
        it = by_name.get(names.connector(name))
        branch = names.connector(name).removesuffix("connector")
        below = [each for each in actors if each.name.startswith(branch)]
        ends = [each.last_end for each in below if each.last_end]
        found.append(
            Account(
                name=name,
                kind=str(config.__struct_config__.tag),
                state="not running" if it is None else it.state,
                restarts=sum(each.restarts for each in below),
                messages=brought.get(name, 0),
                last_end=ends[0] if ends else "",
            )
        )
    return found


def failures(actors: Sequence[ActorStatistics]) -> list[Failure]:
    """List actors whose last run failed, the most restarted first."""
    found = sorted(
        (each for each in actors if each.last_end),
        key=lambda each: (-each.restarts, each.name),
    )
    return [Failure(x.name, x.last_end, x.restarts) for x in found[:MOST_FAILURES]]


def letters(look: Look) -> list[Failure]:
    """List the last dead letters."""
    last = look.inside.system.dead_letters.last()[-MOST_FAILURES:]
    return [
        Failure(each.recipient, f"{type(each.message).__name__}: {each.reason}", 1)
        for each in reversed(last)
    ]


VIEW = View("overview", "Overview", load, every=2.0)
