"""What keeps appointments cheap and quiet, for `callboard schedule list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.day_tokens import is_allotted, midnight
from actors.lightened import set_model
from actors.records import USAGE, UsageRecord
from actors.rules.quiet_hours import hours_of
from actors.schedule_config import SchedulerConfig
from connectors.commands.printing import complain, table
from connectors.model_checks import find_zone
from connectors.office.record import read_record
from runtime.clock import SystemClock
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from connectors.config import AppConfig
    from connectors.office.appointments import Row

HEADERS = ("AGENT", "TOKENS TODAY", "OF", "HEARTBEAT BY", "OTHERS BY", "QUIET")


class Cost(msgspec.Struct, frozen=True):
    """What an appointment may take, and when it rests."""

    model: str
    """By which of `[models.<name>]` it is done; empty: the settings do not say."""

    quiet: tuple[str, ...]
    """Hours in which it is not begun."""

    tokens_today: int
    """What its agent has taken today for all that is due."""

    daily_tokens: int | None
    """What it may take in a day; null: no limit."""


class Costs:
    """What the agents of a company have taken today.

    Args:
        path: the database.
        app: the settings; None: nobody says where they are.
    """

    def __init__(self, path: Path, app: AppConfig | None) -> None:
        self._app = app
        self._scheduler = SchedulerConfig() if app is None else app.scheduler
        self._sums: dict[str, int] = {}
        zone = find_zone(self._scheduler.time_zone)
        if zone is None:
            return
        since = midnight(SystemClock().wall(), zone)
        with survey(path) as rows:
            for row in rows.recent(USAGE, since):
                body = read_record(row, UsageRecord, complain)
                if body is not None and is_allotted(body):
                    tokens = body.input_tokens + body.output_tokens
                    self._sums[body.agent] = self._sums.get(body.agent, 0) + tokens

    def of(self, row: Row) -> Cost:
        """Say what one appointment may take."""
        name, kind = row.it.agent, row.it.kind
        used = self._sums.get(name, 0)
        agent = None if self._app is None else self._app.agents.get(name)
        if agent is None:
            return Cost("", (), used, None)
        hours, _ = hours_of(kind, agent.heartbeat.quiet, self._scheduler.quiet)
        model = set_model(agent, kind) or agent.model
        return Cost(model, hours, used, agent.scheduled.daily_tokens or None)

    def told(self, rows: Sequence[Row]) -> Iterator[str]:
        """Give a table of the agents of these appointments, after an empty line."""
        names = tuple(dict.fromkeys(row.it.agent for row in rows))
        if self._app is None and not any(self._sums.get(name) for name in names):
            return
        yield ""
        yield from table(HEADERS, map(self._cells, names))

    def _cells(self, name: str) -> tuple[object, ...]:
        used = f"{self._sums.get(name, 0):,}"
        agent = None if self._app is None else self._app.agents.get(name)
        if agent is None:
            return (name, used, "", "", "", "")
        limit = agent.scheduled.daily_tokens
        quiet = self._scheduler.quiet
        hours, _ = hours_of("heartbeat", agent.heartbeat.quiet, quiet)
        others = [each for each in quiet.kinds if each != "heartbeat"]
        told = [f"heartbeat {', '.join(hours)}"] if hours else []
        if quiet.hours and others:
            told.append(f"{'/'.join(others)} {', '.join(quiet.hours)}")
        rests = f"{'; '.join(told)} ({quiet.then})" if told else ""
        beat = f"{set_model(agent, 'heartbeat') or agent.model}"
        return (
            name,
            used,
            f"{limit:,}" if limit else "no limit",
            f"{beat}, {agent.heartbeat.context}",
            set_model(agent, "") or agent.model,
            rests,
        )
