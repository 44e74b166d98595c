"""Hands tasks of one agent to others, as far as the loop guard allows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from actors.delegation import loop_guard
from actors.messages import priority
from actors.messages.inbound import DelegationChain, Inbound
from actors.rules.groups import addressing as addressed
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from actors.agents.persona import Persona
    from actors.journal.plan import Carried
    from actors.protocol import Finished
    from actors.rules.markers.actions import Delegation
    from actors.rules.markers.parser import ParsedAnswer
    from actors.services import Services

LOG = EventLog("session")


def hand_on_all(
    inbound: Inbound,
    finished: Finished,
    parsed: ParsedAnswer,
    persona: Persona,
    services: Services,
) -> tuple[list[Inbound], list[str]]:
    """Give the messages for other agents, and why some were not written."""
    wanted = (*finished.delegations, *parsed.delegations)
    open_to = addressed.heard_by(
        parsed, inbound, persona, services.collaboration, services.agent_access
    )
    if not wanted and not open_to:
        return [], []
    is_own = not inbound.chain.agents
    most = services.limits.max_delegations
    left = inbound.chain.left
    if is_own:
        left = loop_guard.own_share(most, inbound.heard_by)
    left = max(0, left - finished.consulted)
    granted, each = loop_guard.share(left, len(wanted) + len(open_to))
    room = max(0, granted - len(wanted))
    turns = loop_guard.visible_turns_left(
        inbound, services.collaboration.visible_max_turns
    )
    turned, _ = loop_guard.share(turns, min(room, len(open_to)))
    each_turns = (turns - turned) // granted if granted else 0
    handing = Handing(inbound, finished, persona, services, (each, each_turns))
    for delegation in wanted[:granted]:
        handing.delegate(delegation)
    if granted < len(wanted):
        services.metrics.delegations.add(1, persona.name, "max_delegations")
        handing.refusals.append(loop_guard.spent(most).text)
    for number, target in enumerate(open_to):
        handing.call(
            target,
            parsed.visible,
            has_room=number < room,
            has_turns=number < turned or number >= room,
        )
    return handing.handed, handing.refusals


NOT_HANDED_ON = "[Came with the message, and was not handed on to you: {files}]"


class Handing:
    """The delegations that follow from one answer.

    Args:
        each: how many tasks each of the others may hand on in its turn, and how many
            visible turns may follow from it.
    """

    def __init__(
        self,
        inbound: Inbound,
        finished: Finished,
        persona: Persona,
        services: Services,
        each: tuple[int, int],
    ) -> None:
        self._inbound = inbound
        self._kept_apart = frozenset(finished.kept_apart)
        self._persona = persona
        self._services = services
        self._each = each
        self._number = 0
        self.handed: list[Inbound] = []
        self.refusals: list[str] = []

    def delegate(self, delegation: Delegation) -> None:
        """Hand a task on, or say why not."""
        services, name = self._services, self._persona.name
        verdict = may_hand_on(self._inbound, delegation, self._persona, services)
        if (
            isinstance(verdict, loop_guard.DelegationAllowed)
            and verdict.target in self._kept_apart
        ):
            verdict = loop_guard.to_pause(name, verdict.target)
        if isinstance(verdict, loop_guard.DelegationRefused):
            self._number += 1
            services.metrics.delegations.add(1, name, verdict.reason)
            self.refusals.append(verdict.text)
            return
        services.metrics.delegations.add(1, name, "ok")
        self._hand_on(delegation.task, verdict.chain)

    def call(self, target: str, words: str, *, has_room: bool, has_turns: bool) -> None:
        """Have an agent hear the answer that calls it, or be silent about it.

        Args:
            target: who is called.
            words: what people see of the answer.
            has_room: whether the message may cause one more task or call.
            has_turns: whether it may cause one more visible turn.
        """
        inbound, services, name = self._inbound, self._services, self._persona.name
        if any(each.agent == target for each in self.handed):
            return  # it hears of it already
        chain = inbound.chain
        is_last = chain.agents[-1:] == (name,)
        path = chain.agents if is_last else (*chain.agents, name)
        now = services.clock.monotonic()
        outcome: str = addressed.may_speak(chain, now, has_turns=has_turns)
        if outcome == "ok" and not has_room:
            outcome = "max_delegations"
        if outcome == "ok" and target in self._kept_apart:
            outcome = "max_rounds"
        services.metrics.collaborations.add(1, name, "visible", outcome)
        if outcome != "ok":
            # Why nothing is said: nobody was promised an answer, and the room has heard
            # enough of them.
            LOG.info(
                "agent not called",
                correlation_id=inbound.correlation_id,
                source=name,
                target=target,
                reason=outcome,
            )
            return
        self._hand_on(
            words,
            DelegationChain(
                agents=(*path, target), deadline=chain.deadline, turns=chain.turns + 1
            ),
        )

    def _hand_on(self, task: str, chain: DelegationChain) -> None:
        """Make the message that the other hears; its reply address is the same."""
        source, target = chain.agents[-2:]
        inbound, services = self._inbound, self._services
        left, turns_left = self._each
        is_by_conductor = self._persona.config.is_conductor
        self.handed.append(
            msgspec.structs.replace(
                inbound,
                id=services.ids.new(),
                # Why not the new id: handed on again after a crash, it is still the
                # same.
                platform_id=f"{inbound.id}>{self._number}",
                origin_id=inbound.answered_id,
                sender_name=source,
                text=without_files(task, inbound),
                received_at=services.clock.wall(),
                agent=target,
                attachments=(),
                quoted=None,
                mentions=(),
                history=(),
                chain=msgspec.structs.replace(chain, left=left, turns_left=turns_left),
                others=0,
                copy_of=0,
                priority=priority.of_delegation(
                    inbound.priority, is_by_conductor=is_by_conductor
                ),
            )
        )
        self._number += 1


def without_files(task: str, inbound: Inbound) -> str:
    """Give the words for a colleague, who is told which files it does not get.

    Why not the files: they are stored with each message, and one message may have
    dozens of tasks.
    """
    files = ", ".join(each.name or each.kind for each in inbound.attachments)
    return f"{task}\n\n{NOT_HANDED_ON.format(files=files)}" if files else task


def may_hand_on(
    inbound: Inbound,
    delegation: Delegation,
    persona: Persona,
    services: Services,
) -> loop_guard.DelegationAllowed | loop_guard.DelegationRefused:
    """Ask the loop guard about one delegation of this agent."""
    limits = persona.delegation_limits(services.limits.max_hops)
    now = services.clock.monotonic()
    return loop_guard.may_delegate(
        inbound.chain, persona.name, delegation.agent, limits, now
    )


def beside(persona: Persona, carried: Carried) -> Persona:
    """Let an agent hand work to those whom its very answer makes."""
    new = carried.made
    if not new:
        return persona
    return replace(
        persona,
        colleagues={**persona.colleagues, **new},
        everybody=tuple(dict.fromkeys((*persona.everybody, *new))),
    )
