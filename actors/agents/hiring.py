"""Decides a conductor's requests to make or change agents and clients; pure.

The wishes of one answer are decided one after the other, so that a later one finds
what an earlier one made; all of them are stored together, with the answer, or not at
all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, assert_never

import msgspec

from actors.agents import hired
from actors.agents.hired import Client, HiredAgent, HiringTerms
from actors.rules.markers.actions import (
    AgentFields,
    CreateAgent,
    CreateClient,
    Staffing,
    UpdateAgent,
)
from actors.rules.markers.outcomes import ActionOutcome

MOST_AT_ONCE = 8
"""Wishes of one answer that are carried out."""

Settled = Literal["agent_created", "agent_updated"]


class Requester(msgspec.Struct, frozen=True, kw_only=True):
    """The conductor that asks, and the person at whose words."""

    agent: str
    """Name of the agent."""

    is_conductor: bool
    person: str
    """Whose words it answers, as `connector/sender_id`."""

    is_owner: bool
    is_delegated: bool
    """Whether another agent handed it the work."""

    message: str
    """Id of the message."""

    now: float
    """Unix seconds."""


class HiringDecision(msgspec.Struct, frozen=True):
    """The changes to store, and what the agent is told."""

    agents: dict[str, HiredAgent] = {}
    """Made or changed, by name."""

    clients: dict[str, Client] = {}
    """New, by id."""

    outcomes: tuple[ActionOutcome, ...] = ()
    """For people: one for each wish."""


def fault_of(maker: Requester, terms: HiringTerms) -> str:
    """Say why nothing at all is carried out for somebody; empty: it may be."""
    who = terms.hiring.who
    if not maker.is_conductor:
        return "only a conductor may do that"
    if who == "nobody":
        return "the settings do not allow it: [hiring] who"
    if maker.is_delegated:
        return "that is done at the words of a person only, not of another agent"
    if who == "owners" and not maker.is_owner:
        return "only an owner may ask for that"
    return ""


class HiringRules:
    """Decides the requests of one answer.

    Args:
        agents: the agents that were made before, by name.
        busy: names that an answer still on its way to the disk makes or changes.
    """

    def __init__(
        self,
        maker: Requester,
        terms: HiringTerms,
        agents: Mapping[str, HiredAgent],
        clients: Iterable[str] = (),
        busy: Iterable[str] = (),
    ) -> None:
        self._maker = maker
        self._terms = terms
        self._agents = dict(agents)
        self._clients = set(clients)
        self._busy = frozenset(busy)
        self._made: dict[str, HiredAgent] = {}
        self._new_clients: dict[str, Client] = {}

    def decide(self, wishes: Iterable[Staffing]) -> HiringDecision:
        """Decide about all, in their order."""
        refused = fault_of(self._maker, self._terms)
        outcomes: list[ActionOutcome] = []
        for number, wish in enumerate(wishes):
            if refused:
                outcome = _no(name_of(wish), refused)
            elif number >= MOST_AT_ONCE:
                outcome = _no(name_of(wish), f"{MOST_AT_ONCE} are done at once")
            else:
                outcome = self._on(wish)
            outcomes.append(outcome)
        return HiringDecision(self._made, self._new_clients, tuple(outcomes))

    def _on(self, wish: Staffing) -> ActionOutcome:
        match wish:
            case CreateAgent(slug=slug, fields=fields):
                return self._make(slug, fields)
            case UpdateAgent(slug=slug, fields=fields):
                return self._change(slug, fields)
            case CreateClient():
                return self._client(wish)
            case _:
                assert_never(wish)

    # --- agents -------------------------------------------------------------------

    def _make(self, name: str, fields: AgentFields) -> ActionOutcome:
        if fault := hired.fault_of_name(name, self._terms):
            return _no(name, fault)
        if name in self._busy:
            return _no(name, "somebody else makes it just now")
        if name in self._agents:
            return _no(name, "there is one of this name, which can be changed")
        most = self._terms.hiring.max_agents
        if len(self._agents) >= most:
            return _no(name, f"{most} agents have been made, and no more may be")
        maker = self._maker
        blank = HiredAgent(
            name=name,
            model=self._terms.settled.get(maker.agent, ""),
            made_by=maker.agent,
            asked_by=maker.person,
            message=maker.message,
            created_at=maker.now,
            updated_at=maker.now,
        )
        return self._settle(filled(blank, fields), "agent_created")

    def _change(self, name: str, fields: AgentFields) -> ActionOutcome:
        if name in self._terms.settled:
            return _no(name, "the settings made it, and only they change it")
        before = self._agents.get(name)
        if before is None:
            return ActionOutcome(kind="not_found", what=name)
        if name in self._busy:
            return _no(name, "somebody else changes it just now")
        after = filled(before, fields)
        if after == before:
            return _no(name, "it is like that already")
        after = msgspec.structs.replace(after, updated_at=self._maker.now)
        return self._settle(after, "agent_updated")

    def _settle(self, agent: HiredAgent, kind: Settled) -> ActionOutcome:
        known = {*self._terms.settled, *self._agents, agent.name}
        if fault := hired.fault_of(agent, self._terms, known):
            return _no(agent.name, fault)
        self._agents[agent.name] = self._made[agent.name] = agent
        return ActionOutcome(kind=kind, what=f"@{agent.name}")

    # --- clients ------------------------------------------------------------------

    def _client(self, wish: CreateClient) -> ActionOutcome:
        name = hired.line(wish.name, hired.LONGEST_TITLE)
        key = hired.client_id(name)
        if not key:
            return _no(name, "this is no name")
        if key in self._clients:
            return _no(name, "there is a client of this name already")
        most = self._terms.hiring.max_clients
        if len(self._clients) >= most:
            return _no(name, f"{most} clients are kept, and no more")
        self._clients.add(key)
        self._new_clients[key] = Client(
            name=name,
            email=hired.line(wish.email, hired.LONGEST_CONTACT),
            phone=hired.line(wish.phone, hired.LONGEST_CONTACT),
            notes=_cut(wish.notes),
            made_by=self._maker.agent,
            asked_by=self._maker.person,
            message=self._maker.message,
            created_at=self._maker.now,
        )
        return ActionOutcome(kind="client_created", what=name)


def filled(agent: HiredAgent, fields: AgentFields) -> HiredAgent:
    """Take over what was said, cleaned; what was not said stays."""
    texts: dict[str, tuple[str | None, Callable[[str], str]]] = {
        "title": (fields.name, lambda x: hired.line(x, hired.LONGEST_TITLE)),
        "description": (
            fields.description,
            lambda x: hired.line(x, hired.LONGEST_DESCRIPTION),
        ),
        "role": (fields.role, hired.words),
        "prompt": (fields.prompt, hired.words),
        "model": (fields.model, lambda x: hired.line(x, hired.LONGEST_TITLE)),
    }
    changes: dict[str, object] = {
        key: clean(said) for key, (said, clean) in texts.items() if said is not None
    }
    for key, said in (("tools", fields.tools), ("delegates", fields.delegates)):
        if said is not None:
            changes[key] = _names(said)
    if not changes.get("model", "-"):
        del changes["model"]
    return msgspec.structs.replace(agent, **changes)


def name_of(wish: Staffing) -> str:
    """Say what a wish is about."""
    match wish:
        case CreateAgent(slug=name) | UpdateAgent(slug=name):
            return name
        case CreateClient(name=name):
            return name
        case _:
            assert_never(wish)


def _names(said: tuple[str, ...]) -> tuple[str, ...]:
    cleaned = (hired.line(each, hired.LONGEST_TITLE).lstrip("@") for each in said)
    return tuple(dict.fromkeys(cleaned))


def _cut(notes: str) -> str:
    return hired.words(notes)[: hired.LONGEST_NOTES]


def _no(what: str, why: str) -> ActionOutcome:
    return ActionOutcome(kind="refused", what=what, why=why)
