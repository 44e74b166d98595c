"""What must fit together in what busy conversations do; asked by `settings.py`."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from actors.busy_config import OVERRIDES, BufferingConfig
from actors.rules.busy_policies import MANNERS
from connectors.config import HttpConfig
from runtime.config import Complaint, close_to

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from actors.busy_config import BusyPolicyConfig
    from connectors.config import AppConfig
    from connectors.model_checks import Way


def check_busy(app: AppConfig) -> Iterator[Complaint]:
    """Check busy policies, whom they are for, and when a turn counts as stuck."""
    tables: list[tuple[Way, BufferingConfig]] = [(("buffering",), app.buffering)]
    for index, table in enumerate(app.busy_policies):
        way: Way = ("busy_policies", index)
        yield from check_patterns(way, table, app)
        yield from check_reached(way, table, app.busy_policies[:index])
        tables.append((way, merged(app.buffering, table)))
    for way, whole in tables:
        yield from check_table(way, whole)
        if whole.policy != "serial" and not app.limits.max_waiting:
            text = "limits.max_waiting = 0 refuses all that comes during a turn"
            hint = "let at least one message wait"
            yield Complaint((*way, "policy"), text, hint, is_warning=True)
    yield from check_watchdog(app)


def merged(usual: BufferingConfig, table: BusyPolicyConfig) -> BufferingConfig:
    """Give what a table comes to."""
    values = {
        name: getattr(usual if getattr(table, name) is None else table, name)
        for name in OVERRIDES
    }
    return BufferingConfig(**values)


def check_table(way: Way, table: BufferingConfig) -> Iterator[Complaint]:
    """Check what one table says."""
    manner = MANNERS[table.policy]
    if table.longest_debounce < table.debounce:
        text = f"is below debounce, {table.debounce:g} s"
        hint = "the longest wait holds the shortest one"
        yield Complaint((*way, "longest_debounce"), text, hint)
    idle = [
        ("debounce", table.debounce > 0 and not manner.gathers),
        ("note", table.note and not manner.notes),
        ("overflow", table.overflow == "summarise" and not manner.joins),
    ]
    for name, is_idle in idle:
        if is_idle:
            text = f"means nothing with the policy {table.policy!r}"
            hint = "see the comments in config/default.toml"
            yield Complaint((*way, name), text, hint, is_warning=True)


def check_patterns(
    way: Way, table: BusyPolicyConfig, app: AppConfig
) -> Iterator[Complaint]:
    """Check that a table is for somebody, and can be followed there."""
    for name, known in (("agent", app.agents), ("connector", app.connectors)):
        pattern: str = getattr(table, name)
        if not any(fnmatchcase(each, pattern) for each in known):
            text = f"no {name} fits {pattern!r}"
            yield Complaint((*way, name), text, close_to(pattern, known))
    connector = app.connectors.get(table.connector)
    if isinstance(connector, HttpConfig) and table.policy not in {None, "serial"}:
        text = "over HTTP each request waits for its own answer: always 'serial'"
        hint = "leave the table out"
        yield Complaint((*way, "policy"), text, hint, is_warning=True)


def check_reached(
    way: Way, table: BusyPolicyConfig, before: Sequence[BusyPolicyConfig]
) -> Iterator[Complaint]:
    """Check that no table before this one takes all that fits it."""
    for index, first in enumerate(before):
        pairs = (
            (first.agent, table.agent),
            (first.connector, table.connector),
            (first.chat, table.chat),
        )
        if all(one in {"*", other} for one, other in pairs):
            text = f"never counts: busy_policies[{index}] comes first and fits it all"
            hint = "put it before that one, or take it out"
            yield Complaint(way, text, hint, is_warning=True)
            return


def check_watchdog(app: AppConfig) -> Iterator[Complaint]:
    """Check that nothing counts as stuck that is only slow."""
    watchdog, longest = app.watchdog, app.tool_calls.tool_timeout
    way: Way = ("watchdog", "stuck_after")
    if 0 < watchdog.stuck_after < watchdog.stalled_after:
        text = f"is below stalled_after, {watchdog.stalled_after:g} s"
        yield Complaint(way, text, "a turn stalls before it is stuck")
    if 0 < watchdog.stuck_after <= longest:
        text = f"a tool may take {longest:g} s, and says nothing meanwhile"
        hint = "make it longer than tool_calls.tool_timeout"
        yield Complaint(way, text, hint, is_warning=True)
