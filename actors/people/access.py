"""Admission rules: who may write to agents at all; pure and total.

Decided before anything of a message is stored. The rules in order, the first that
says something counts:

1. `place`: groups are dropped, or this one is none of those that are handled.
2. `owner`: who runs this company may write, whatever else is set.
3. `denied`: who is denied may not.
4. `group`: in groups that are handled, if everyone may write there.
5. `anyone`: if anyone may write.
6. `listed`, `role`: who is listed, by id or by what they are on the platform.
7. `paired`: whom an owner has let in.

Nobody else may. In a direct chat they get a code, if the settings want that; otherwise
they are told once a day whom to ask, in a group only if they call an agent.

How often an agent answers another program until it is quiet for a while.

Pure but for its counters. Two programs that answer each other never stop by themselves,
whatever their models are told, so this counts, and no model is asked. A pair is an
agent of ours and somebody else's program, whoever began; what it does in one chat
changes nothing elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import msgspec

from actors.config.access import AccessConfig
from actors.messages.inbound import Inbound
from actors.messages.keys import account_of
from actors.rules.text.globs import Globs, globs

Admitted = Literal["edge", "owner", "group", "anyone", "listed", "role", "paired"]
Reason = Literal["group_dropped", "unknown_chat", "denied_sender", "unknown_sender"]
RuleName = Literal[
    "place", "owner", "denied", "group", "anyone", "listed", "role", "paired"
]


class AccessPolicy(msgspec.Struct, frozen=True):
    """The admission rules of one connector, as the settings say."""

    config: AccessConfig
    owners: frozenset[str]
    """Each as `connector/sender_id`."""

    allowed: Globs
    roles: Globs
    denied: Globs
    chats: Globs


class AccessRuleResult(msgspec.Struct, frozen=True):
    """The result of one rule."""

    rule: RuleName
    outcome: Literal["admit", "refuse", "pass"]
    """`pass`: it has nothing to say about this message."""

    why: str


class Admit(msgspec.Struct, frozen=True):
    """The message is accepted."""

    reason: Admitted
    verdicts: tuple[AccessRuleResult, ...] = ()


class RefuseSender(msgspec.Struct, frozen=True):
    """The message is refused; nothing of it is stored."""

    reason: Reason
    is_told: bool
    """Whether the sender waits for an answer, and is given this one."""

    verdicts: tuple[AccessRuleResult, ...] = ()

    may_hint: bool = False
    """Whether the sender may be told how to be let in: an unknown person."""


class OfferPairing(msgspec.Struct, frozen=True):
    """The message is refused, and its sender may ask an owner to be let in."""

    verdicts: tuple[AccessRuleResult, ...] = ()


Decision = Admit | RefuseSender | OfferPairing

BY_THE_EDGE = Admit("edge")


def policy(config: AccessConfig, owners: Collection[str]) -> AccessPolicy:
    """Make what decides about one connector.

    Args:
        owners: who runs this company, each as `connector/sender_id`.
    """
    return AccessPolicy(
        config,
        frozenset(owners),
        allowed=globs(config.allowed),
        roles=globs(config.allowed_roles),
        denied=globs(config.denied),
        chats=globs(config.allowed_chats),
    )


def admit(
    inbound: Inbound,
    policy: AccessPolicy | None,
    *,
    is_paired: bool = False,
    waits: bool = False,
) -> Decision:
    """Decide whether somebody's message is taken in.

    Args:
        inbound: the message; its words do not count.
        policy: of its connector; None: its edge knows its people, and admits them.
        is_paired: whether an owner has let this account in.
        waits: whether the sender waits for an answer to each message, as over HTTP.
    """
    if policy is None:
        return BY_THE_EDGE
    verdicts: list[AccessRuleResult] = []
    for verdict in (
        _place(inbound, policy),
        _owner(inbound, policy),
        _denied(inbound, policy),
        _everyone(inbound, policy),
        *_known(inbound, policy, is_paired=is_paired),
    ):
        verdicts.append(verdict)
        if verdict.outcome == "admit":
            return Admit(_ADMITTED[verdict.rule], tuple(verdicts))
        if verdict.outcome == "refuse":
            reason = _refused(verdict.rule, policy)
            return RefuseSender(reason, waits, tuple(verdicts))
    if may_pair(inbound, policy):
        return OfferPairing(tuple(verdicts))
    may_hint = policy.config.tell_strangers and _is_person(inbound) and not waits
    return RefuseSender("unknown_sender", waits, tuple(verdicts), may_hint)


def may_pair(inbound: Inbound, policy: AccessPolicy) -> bool:
    """Whether a stranger may ask to be let in: a person, in a direct chat."""
    is_offered = policy.config.people == "pairing" and inbound.is_direct
    return is_offered and _is_person(inbound)


def _is_person(inbound: Inbound) -> bool:
    return bool(inbound.sender_id) and not inbound.is_bot


_ADMITTED: dict[RuleName, Admitted] = {
    "owner": "owner",
    "group": "group",
    "anyone": "anyone",
    "listed": "listed",
    "role": "role",
    "paired": "paired",
}


def _refused(rule: RuleName, policy: AccessPolicy) -> Reason:
    if rule == "denied":
        return "denied_sender"
    return "group_dropped" if policy.config.groups == "drop" else "unknown_chat"


def _place(inbound: Inbound, policy: AccessPolicy) -> AccessRuleResult:
    if inbound.is_direct:
        return AccessRuleResult("place", "pass", "a direct chat")
    if policy.config.groups == "drop":
        return AccessRuleResult("place", "refuse", "groups are dropped")
    fitting = policy.chats.fit(inbound.address.chat)
    if fitting:
        return AccessRuleResult("place", "pass", f"this group fits {fitting!r}")
    return AccessRuleResult("place", "refuse", "this group is none of allowed_chats")


def _owner(inbound: Inbound, policy: AccessPolicy) -> AccessRuleResult:
    if inbound.sender_id and account_of(inbound) in policy.owners:
        return AccessRuleResult("owner", "admit", "an owner")
    return AccessRuleResult("owner", "pass", "no owner")


def _denied(inbound: Inbound, policy: AccessPolicy) -> AccessRuleResult:
    fitting = policy.denied.fit(inbound.sender_id)
    if fitting:
        return AccessRuleResult("denied", "refuse", f"fits {fitting!r} of denied")
    return AccessRuleResult("denied", "pass", "not denied")


def _everyone(inbound: Inbound, policy: AccessPolicy) -> AccessRuleResult:
    if not inbound.is_direct and policy.config.group_people == "everyone":
        return AccessRuleResult("group", "admit", "everyone may write in this group")
    if policy.config.people == "anyone":
        return AccessRuleResult("anyone", "admit", "anyone may write")
    return AccessRuleResult("group", "pass", "only who is admitted may write here")


def _known(
    inbound: Inbound, policy: AccessPolicy, *, is_paired: bool
) -> tuple[AccessRuleResult, AccessRuleResult, AccessRuleResult]:
    fitting = policy.allowed.fit(inbound.sender_id) if inbound.sender_id else ""
    listed = (
        AccessRuleResult("listed", "admit", f"fits {fitting!r} of allowed")
        if fitting
        else AccessRuleResult("listed", "pass", "not listed")
    )
    role = next((each for each in inbound.roles if policy.roles.fit(each)), "")
    by_role = (
        AccessRuleResult("role", "admit", f"is {role!r} here")
        if role
        else AccessRuleResult("role", "pass", "no role that is allowed")
    )
    paired = (
        AccessRuleResult("paired", "admit", "was let in by an owner")
        if is_paired
        else AccessRuleResult("paired", "pass", "was not let in by an owner")
    )
    return listed, by_role, paired


# Chosen: pairs of agents and programs that wrote within their cool-down.
MOST_PAIRS = 10_000


class PeerPair(msgspec.Struct):
    """How many answers two bots have exchanged."""

    depth: int
    """Answers since they were last quiet."""

    forget_at: float
    """Monotonic seconds from which on it counts no longer."""


class Peers:
    """Counts the answers of each pair of bots in each chat.

    Args:
        most: pairs it remembers; of more, the one that was quiet longest is forgotten.
    """

    def __init__(self, most: int = MOST_PAIRS) -> None:
        self._most = most
        self._pairs: dict[tuple[str, str, str], PeerPair] = {}
        """By chat, agent and program; who answered last is last."""

    def __len__(self) -> int:
        """Count the pairs that are remembered."""
        return len(self._pairs)

    def may_answer(
        self, chat: str, agent: str, peer: str, rounds: int, now: float
    ) -> bool:
        """Tell whether an agent may answer a program once more.

        Args:
            rounds: answers until they have to be quiet.
            now: monotonic seconds.
        """
        pair = self._pairs.get((chat, agent, peer))
        return pair is None or now >= pair.forget_at or pair.depth < rounds

    def answers(
        self, chat: str, agent: str, peer: str, cooldown: float, now: float
    ) -> None:
        """Count an answer.

        Args:
            cooldown: seconds of quiet after which it counts no longer.
            now: monotonic seconds.
        """
        key = (chat, agent, peer)
        pair = self._pairs.pop(key, None)
        depth = 0 if pair is None or now >= pair.forget_at else pair.depth
        self._pairs[key] = PeerPair(depth + 1, now + cooldown)
        while len(self._pairs) > self._most:
            del self._pairs[next(iter(self._pairs))]

    def sweep(self, now: float) -> None:
        """Forget people who have been quiet long enough.

        Args:
            now: monotonic seconds.
        """
        pairs = self._pairs.items()
        self._pairs = {key: pair for key, pair in pairs if now < pair.forget_at}
