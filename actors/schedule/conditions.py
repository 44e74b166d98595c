"""Conditions of a run: what keeps it from starting, and its checklist.

Looked at when a slot is due and not before: quiet hours, the day's tokens, whether the
agent is at work, its checklist. Only a slot set by hand is never held up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from actors import names
from actors.config.agents import AgentConfig
from actors.errors import ToolError
from actors.messages.keys import SessionKey
from actors.models.daily_tokens import DailyTokens, midnight, zone_of_day
from actors.models.limiter import IsWorking
from actors.rules.text.durations import shown
from actors.schedule import checklist, quiet_hours
from actors.schedule.appointments import Appointment, Obstacles
from actors.schedule.checklist import ChecklistGroup
from runtime.actor.ref import UNANSWERED, ActorRef
from runtime.errors import KernelError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

    from actors.messages.inbound import Inbound
    from actors.services import Services
    from runtime.actor.actor import Actor

    Config = Callable[[str], AgentConfig | None]

LOG = EventLog("schedule")

PUT_OFF = 60.0
"""Seconds after which it is looked again whether turns that run leave any tokens."""

ANSWERED_WITHIN = 1.0
"""Seconds that the limiter may take to answer; it does nothing but count."""


class DailyTokensUsed(msgspec.Struct, frozen=True):
    """An agent has used up its tokens for the day."""

    agent: str
    used: int
    limit: int
    day: str
    """As `2026-11-23`."""


class ConditionCheck(msgspec.Struct, frozen=True):
    """Whether a due slot may be carried out."""

    bar: Obstacles | None = None
    groups: tuple[ChecklistGroup, ...] = ()
    """What a heartbeat looks after; nothing for all others."""

    overspent: DailyTokensUsed | None = None


OPEN = ConditionCheck()


class Conditions:
    """Checks what keeps a due slot from being carried out.

    Args:
        config: gives an agent's settings as they are now; None: it is gone.
    """

    def __init__(self, services: Services, config: Config, scheduler: Actor) -> None:
        self._services = services
        self._config = config
        self._scheduler = scheduler
        self._tokens = DailyTokens(services)

    async def look(self, it: Appointment, zone: tzinfo) -> ConditionCheck:
        """Look at an appointment that is due.

        Raises:
            StoreUnavailableError: the disk fails.
        """
        config = self._config(it.agent) or AgentConfig()
        now = self._services.clock.wall()
        found = OPEN
        is_due = bool(it.next_due) and it.next_due <= now and not it.paused
        if is_due:
            found = await self._held_up(it, zone, config)
        if it.kind != "heartbeat":
            return found
        # By hand also what is held up is looked after, and needs its list.
        has_to_read = found.bar is None or 0 < it.run_at <= now
        listed = await self._listed(it, config) if has_to_read else OPEN
        bar = found.bar or listed.bar
        return ConditionCheck(bar, listed.groups, found.overspent)

    def begin(self, inbounds: tuple[Inbound, ...]) -> None:
        """Reckon with turns that are about to begin."""
        if inbounds:
            config = self._config(inbounds[0].agent)
            if config is not None and config.scheduled.daily_tokens:
                self._tokens.begin(inbounds)

    async def _held_up(
        self, it: Appointment, zone: tzinfo, config: AgentConfig
    ) -> ConditionCheck:
        bar = self._quiet(it, zone, config)
        if bar is not None:
            return ConditionCheck(bar)
        spent = await self._overspent(it, config)
        if spent is not None:
            return spent
        return ConditionCheck(await self._busy(it, config))

    def _quiet(
        self, it: Appointment, zone: tzinfo, config: AgentConfig
    ) -> Obstacles | None:
        services = self._services
        quiet = services.scheduler.quiet
        own = config.heartbeat.quiet
        hours, is_own = quiet_hours.hours_of(it.kind, own, quiet)
        if quiet.time_zone and not is_own:
            zone = services.find_zone(quiet.time_zone) or zone
        stretches = quiet_hours.read(hours)
        until = quiet_hours.quiet_until(stretches, services.clock.wall(), zone)
        if not until:
            return None
        is_moved = quiet.then == "move" or not it.repeat
        return Obstacles("quiet", until if is_moved else 0.0)

    async def _overspent(
        self, it: Appointment, config: AgentConfig
    ) -> ConditionCheck | None:
        limit = config.scheduled.daily_tokens
        asks_nobody = it.kind == "reminder" and (
            self._services.scheduler.reminders == "plain"
        )
        if not limit or asks_nobody:
            return None
        now, zone = self._services.clock.wall(), zone_of_day(self._services)
        expected = await self._tokens.expected(it.agent)
        used = await self._tokens.of(it.agent)
        if used < limit:
            # Why not left out: what runs may take less than it is expected to.
            late = Obstacles("tokens", now + PUT_OFF)
            return ConditionCheck(late) if used + expected >= limit else None
        bar = Obstacles("tokens", 0.0 if it.repeat else midnight(now, zone, 1))
        day = shown(now, zone).date().isoformat()
        return ConditionCheck(
            bar, overspent=DailyTokensUsed(it.agent, used, limit, day)
        )

    async def _busy(self, it: Appointment, config: AgentConfig) -> Obstacles | None:
        unless = config.heartbeat.unless_busy
        if it.kind != "heartbeat" or unless == "never":
            return None
        sessions = sessions_of(it, unless)
        is_busy = await is_at_work(self._scheduler.find, sessions)
        if not is_busy and unless == "agent":  # other nodes may work on its other chats
            said = await self._services.duties.ask(IsWorking(sessions))
            for why in said.silent:
                LOG.warning("nobody says who is at work", why=why)
            is_busy = b"true" in said.answers
        return Obstacles("busy") if is_busy else None

    async def _listed(self, it: Appointment, config: AgentConfig) -> ConditionCheck:
        """Read what there is to look after; by settings also from the file."""
        text, settings = "", config.heartbeat
        read = self._services.read_checklist
        if it.by_settings and config.persona is not None and read is not None:
            file = config.persona / settings.file
            try:
                text = await read(file)
            except ToolError as error:
                LOG.warning("checklist not read", agent=it.agent, why=str(error))
                return ConditionCheck(Obstacles("unread"))
        most = self._services.scheduler.max_items
        items = checklist.parse(text)
        if len(items) > most:
            left = len(items) - most
            LOG.warning("checklist too long", agent=it.agent, left_out=left)
        items = items[:most]
        if it.items:
            items = checklist.with_asked(items, it.items)
        groups = checklist.grouped(items, settings.max_groups)
        if not (groups or it.text):
            return ConditionCheck(Obstacles("empty"))
        return ConditionCheck(groups=groups)


async def is_at_work(find: Callable[[str], ActorRef | None], sessions: str) -> bool:
    """Ask whether one of these sessions has a turn; in doubt, none has."""
    limiter = find(names.LIMITER)
    if limiter is None:
        return False
    try:
        return bool(await limiter.ask(IsWorking(sessions), timeout=ANSWERED_WITHIN))
    except (*UNANSWERED, KernelError) as error:
        LOG.warning("nobody says who is at work", why=str(error))
        return False


def sessions_of(it: Appointment, where: Literal["agent", "chat"]) -> str:
    """Give how the names of those sessions begin in which an agent may be at work."""
    root = f"{names.sessions(it.agent)}/"
    if where == "agent":
        return root
    key = SessionKey(it.agent, it.address.connector, it.address.chat).text
    return f"{root}{key.removesuffix('//')}/"
