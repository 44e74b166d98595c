"""Decides which agents hear a message, by `actors/rules/groups/activation.py`.

The router's own part. It remembers what was decided and could come out otherwise now,
whom each agent answered lately, and how often other programs were answered.
"""

from __future__ import annotations

import math

from actors.agents.messages import ReplaceTable
from actors.commands.registry import group_command
from actors.journal import commits
from actors.journal.unsettled import UnroutedMessage, read_back, read_open
from actors.messages.inbound import Inbound
from actors.messages.keys import SessionKey
from actors.people.access import Peers
from actors.protocol import Replied
from actors.rules.groups.activation import GroupVerdict, Situation, judge
from actors.rules.groups.assignments import StickyRoutes
from actors.rules.groups.reply_windows import ReplyWindows, place_of
from actors.rules.groups.routes import NO_GROUP, Outcome, Unrouted, is_for_activation
from actors.services import Services
from actors.session import reply_windows
from runtime.telemetry.logs import EventLog

LOG = EventLog("router")


class Audience:
    """Decides which agents hear a message.

    Args:
        allotted: which agents there are, which chats are whose, and decisions so far.
    """

    def __init__(self, allotted: StickyRoutes, services: Services) -> None:
        self.allotted = allotted
        """Keeps decisions while the agents change."""

        self._services = services
        self._windows = ReplyWindows()
        self._peers = Peers()

    async def read(self) -> None:
        """Read which people the agents answered lately, from the store.

        Raises:
            StoreError: the disk fails.
        """
        self._windows, dropped = await reply_windows.read(self._services.store)
        self._forget(dropped)

    def answered(self, replied: Replied) -> None:
        """Note that an agent answered a person."""
        place = place_of(replied.inbound)
        self._forget(self._windows.answered(replied.agent, place, replied.at))

    def sweep(self, oldest: float = math.inf) -> None:
        """Forget reply windows and counts that are over.

        Args:
            oldest: Unix seconds at which the oldest unsettled message was stored. After
                a restart it is decided by what was true then.
        """
        clock = self._services.clock
        groups = self.allotted.table.groups
        lengths = {
            agent: groups.get(agent, NO_GROUP).config.reply_window
            for agent in self.allotted.agents
        }
        self._peers.sweep(clock.monotonic())
        self._forget(self._windows.expire(lengths, min(clock.wall(), oldest)))

    def _forget(self, keys: tuple[SessionKey, ...]) -> None:
        if keys:
            commit = reply_windows.as_deletion(keys, self._services.clock.wall())
            self._services.store.submit(commit, _note_failure)

    def must_look_back(self, message: UnroutedMessage) -> bool:
        """Whether an earlier process may have stored copies of a message."""
        inbound = message.inbound
        is_again = message.past.was_read and is_for_activation(inbound)
        return is_again and not self.allotted.knows(inbound.id)

    async def replace(self, by: ReplaceTable) -> None:
        """Decide about new messages by another table.

        Raises:
            StoreUnavailableError: the disk fails, and nothing has changed.
        """
        rows = await read_open(self._services.store)
        still_open = [each.inbound for row in rows for each in read_back(row)]
        self.allotted.replace(by.table, by.finishing, still_open)

    def decide(
        self, message: UnroutedMessage, checked: dict[str, bool] | None = None
    ) -> Outcome | GroupVerdict:
        """Decide which agents hear a message.

        Args:
            checked: the relevance by agent, as models said; None: none was asked.
        """
        inbound = message.inbound
        if not is_for_activation(inbound):
            return self.allotted.route(inbound)
        # A message read back from the store was counted when it arrived.
        was_counted = message.past.was_read or self.allotted.knows(inbound.id)
        outcome = self.allotted.route(inbound, self._situation(message, checked))
        if not (was_counted or isinstance(outcome, GroupVerdict)):
            self._count(inbound, outcome)
        return outcome

    def foresee(self, message: UnroutedMessage) -> GroupVerdict | None:
        """Say what would be decided now, without deciding it.

        None: no model would be asked, or copies must be looked for first.
        """
        inbound = message.inbound
        is_open = is_for_activation(inbound) and not self.allotted.knows(inbound.id)
        if not is_open or message.past.was_read:
            return None
        heard = judge(inbound, self.allotted.table, self._situation(message))
        return heard if heard.asking else None

    def _situation(
        self, message: UnroutedMessage, checked: dict[str, bool] | None = None
    ) -> Situation:
        inbound, clock = message.inbound, self._services.clock
        barred: frozenset[str] = frozenset()
        if inbound.is_bot:
            barred = self._barred(inbound, clock.monotonic())
        return Situation(
            now=message.at or clock.wall(),
            answered_at=dict(self._windows.of(place_of(inbound))),
            barred=barred,
            checked=checked or {},
            command=group_command(inbound),
        )

    def _barred(self, inbound: Inbound, now: float) -> frozenset[str]:
        """Name the agents that have answered this program often enough for now."""
        table, chat = self.allotted.table, commits.chat_stream(inbound)
        return frozenset(
            agent
            for agent in table.agents.values()
            if not self._peers.may_answer(
                chat,
                agent,
                inbound.sender_id,
                table.groups.get(agent, NO_GROUP).config.bot_rounds,
                now,
            )
        )

    def _count(self, inbound: Inbound, outcome: Outcome) -> None:
        """Count why a message is answered or not, and the answers to a program."""
        metrics = self._services.metrics
        if isinstance(outcome, Unrouted):
            metrics.activations.add(1, outcome.reason)
            return
        for reason in outcome.reasons:
            metrics.activations.add(1, reason)
        if inbound.is_bot:
            now = self._services.clock.monotonic()
            chat, groups = commits.chat_stream(inbound), self.allotted.table.groups
            for agent in outcome.agents:
                cooldown = groups.get(agent, NO_GROUP).config.bot_cooldown
                self._peers.answers(chat, agent, inbound.sender_id, cooldown, now)


def _note_failure(outcome: object) -> None:
    if isinstance(outcome, Exception):
        LOG.warning("reply windows that are over stay stored", why=str(outcome))
