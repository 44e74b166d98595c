"""What the router knows of who hears what: the shell of `rules/activation.py`.

No actor: the router's own. It holds what was decided and may come out otherwise, whom
each agent answered lately, and how often other programs were answered.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from actors import commits, reply_windows
from actors.rules.activation import Heard, Situation, judge
from actors.rules.peers import Peers
from actors.rules.routes import NO_GROUP, Unrouted, is_for_activation
from actors.rules.windows import Windows, place_of
from runtime.errors import StoreError, StoreUnavailableError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from actors.messages import Inbound
    from actors.protocol import Replied
    from actors.rules.allotted import Allotted
    from actors.rules.keys import SessionKey
    from actors.rules.routes import Outcome
    from actors.services import Services
    from actors.unheard import Unheard
    from runtime.store import Store

LOG = EventLog("router")


class Hearing:
    """Decides who hears a message.

    Args:
        allotted: who there is, whose chats are whose, and what was decided before.
        services: clock, store, counts.
    """

    def __init__(self, allotted: Allotted, services: Services) -> None:
        self.allotted = allotted
        """Who hears what, though the agents may change."""

        self._services = services
        self._windows = Windows()
        self._peers = Peers()

    async def read(self) -> None:
        """Read whom the agents answered before this process began.

        Raises:
            StoreError: the disk fails.
        """
        self._windows, dropped = await reply_windows.read(self._services.store)
        self._forget(dropped)

    def answered(self, replied: Replied) -> None:
        """Note that an agent answered somebody."""
        place = place_of(replied.inbound)
        self._forget(self._windows.answered(replied.agent, place, replied.at))

    def sweep(self, oldest: float = math.inf) -> None:
        """Forget what is over.

        Args:
            oldest: Unix seconds at which the oldest message was stored that is not
                settled: whom it is for is decided anew after a restart, by what was
                so then.
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
            commit = reply_windows.as_forgotten(keys, self._services.clock.wall())
            self._services.store.submit(commit, _note_failure)

    def must_look_back(self, unheard: Unheard) -> bool:
        """Whether an earlier process may have given copies of it to agents."""
        inbound = unheard.inbound
        is_open = is_for_activation(inbound) and not self.allotted.knows(inbound.id)
        return is_open and unheard.past.was_read

    async def look_back(self, unheard: Unheard) -> Unheard:
        """Find out which agents have a copy of a message already.

        What was decided and stored stays decided: they answer theirs, and never the
        original beside it.

        Raises:
            StoreUnavailableError: the disk fails.
        """
        inbound, store = unheard.inbound, self._services.store
        # Why all: who answered lately, and what a model says, differs from then.
        names = dict.fromkeys(inbound.present or self.allotted.agents)
        has = [name for name in names if await is_copied(inbound, name, store)]
        return msgspec.structs.replace(unheard, copied=frozenset(has))

    def decide(
        self, unheard: Unheard, checked: dict[str, bool] | None = None
    ) -> Outcome | Heard:
        """Decide who hears a message.

        Args:
            unheard: the message.
            checked: what models said of it, by agent; None: nobody was asked.
        """
        inbound = unheard.inbound
        if not is_for_activation(inbound):
            return self.allotted.route(inbound)
        # What was read back was counted when it came in.
        was_counted = unheard.past.was_read or self.allotted.knows(inbound.id)
        outcome = self.allotted.route(inbound, self._situation(unheard, checked))
        if not (was_counted or isinstance(outcome, Heard)):
            self._count(inbound, outcome)
        return outcome

    def foresee(self, unheard: Unheard) -> Heard | None:
        """Say what would come out by what is known now; nothing is decided by it.

        None: no model is asked of it, or copies of it must be looked for first.
        """
        inbound = unheard.inbound
        is_open = is_for_activation(inbound) and not self.allotted.knows(inbound.id)
        if not is_open or unheard.past.was_read:
            return None
        heard = judge(inbound, self.allotted.table, self._situation(unheard))
        return heard if heard.asking else None

    def _situation(
        self, unheard: Unheard, checked: dict[str, bool] | None = None
    ) -> Situation:
        inbound, clock = unheard.inbound, self._services.clock
        barred: frozenset[str] = frozenset()
        if inbound.is_bot:
            barred = self._barred(inbound, clock.monotonic())
        return Situation(
            now=unheard.at or clock.wall(),
            answered_at=dict(self._windows.of(place_of(inbound))),
            barred=barred,
            checked=checked or {},
        )

    def _barred(self, inbound: Inbound, now: float) -> frozenset[str]:
        """Name those that have answered this program often enough for now."""
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
        """Count why it is answered, or is not; and the answers to a program."""
        metrics = self._services.metrics
        if isinstance(outcome, Unrouted):
            metrics.activation(outcome.reason)
            return
        for reason in outcome.reasons:
            metrics.activation(reason)
        if inbound.is_bot:
            now = self._services.clock.monotonic()
            chat, groups = commits.chat_stream(inbound), self.allotted.table.groups
            for agent in outcome.agents:
                cooldown = groups.get(agent, NO_GROUP).config.bot_cooldown
                self._peers.answers(chat, agent, inbound.sender_id, cooldown, now)


async def is_copied(inbound: Inbound, agent: str, store: Store) -> bool:
    """Whether an agent has a stored copy of a message.

    Raises:
        StoreUnavailableError: the disk fails.
    """
    connector = inbound.address.connector
    try:
        found = await store.answered(connector, copy_id(inbound, agent))
    except StoreUnavailableError:
        raise
    except StoreError as error:
        LOG.fault("copies not read", error, correlation_id=inbound.id)
        return False
    return found is not None


def copy_id(inbound: Inbound, agent: str) -> str:
    """Name an agent's copy of a message: the same, whenever it is made."""
    return f"{inbound.platform_id}+{agent}"


def split(
    unheard: Unheard, agents: tuple[str, ...], services: Services
) -> tuple[Inbound, ...]:
    """Give each agent a message of its own, the original first.

    Args:
        unheard: what they hear.
        agents: those that have no copy yet; at least one.
        services: new ids.
    """
    first, *further = agents
    others = len(further) + len(unheard.copied)
    inbound = msgspec.structs.replace(unheard.inbound, heard_by=others + 1)
    copies = tuple(
        msgspec.structs.replace(
            inbound,
            id=services.ids.new(),
            platform_id=copy_id(inbound, agent),
            agent=agent,
            copy_of=unheard.number,
        )
        for agent in further
    )
    return (msgspec.structs.replace(inbound, agent=first, others=others), *copies)


def without_copies(unheard: Unheard) -> Unheard:
    """Give what one agent hears, though others have a copy from before."""
    others = len(unheard.copied)
    if not others:
        return unheard
    inbound = msgspec.structs.replace(
        unheard.inbound, others=others, heard_by=others + 1
    )
    return msgspec.structs.replace(unheard, inbound=inbound)


def _note_failure(outcome: object) -> None:
    if isinstance(outcome, Exception):
        LOG.warning("reply windows that are over stay stored", why=str(outcome))
