"""Who may write to agents at all (F050 to F054, C2, C3); pure and total.

Decided before anything of a message is stored. The rules in order, the first that
says something counts:

1. `place`: groups are dropped, or this one is none of those that are handled.
2. `owner`: who runs this company may write, whatever else is set.
3. `denied`: who is denied may not.
4. `group`: in groups that are handled, if everyone may write there.
5. `anyone`: if anyone may write.
6. `listed`, `role`: who is listed, by id or by what they are on the platform.
7. `paired`: whom an owner has let in.

Nobody else may. In a direct chat they get a code, if the settings want that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from actors.access_config import AccessConfig
from actors.rules.approvals import person
from actors.rules.globs import Globs, globs

if TYPE_CHECKING:
    from collections.abc import Collection

    from actors.messages import Inbound

Admitted = Literal["edge", "owner", "group", "anyone", "listed", "role", "paired"]
Reason = Literal["group_dropped", "unknown_chat", "denied_sender", "unknown_sender"]
RuleName = Literal[
    "place", "owner", "denied", "group", "anyone", "listed", "role", "paired"
]


class Policy(msgspec.Struct, frozen=True):
    """What decides about one connector; made by `policy`."""

    config: AccessConfig
    owners: frozenset[str]
    """Each as `connector/sender_id`."""

    allowed: Globs
    roles: Globs
    denied: Globs
    chats: Globs


class Verdict(msgspec.Struct, frozen=True):
    """What one rule said."""

    rule: RuleName
    outcome: Literal["admit", "refuse", "pass"]
    """`pass`: it has nothing to say about this message."""

    why: str


class Admit(msgspec.Struct, frozen=True):
    """The message is taken in."""

    reason: Admitted
    verdicts: tuple[Verdict, ...] = ()


class Refuse(msgspec.Struct, frozen=True):
    """Nothing of the message is kept."""

    reason: Reason
    is_told: bool
    """Whether the sender waits for an answer, and is given this one."""

    verdicts: tuple[Verdict, ...] = ()


class Pair(msgspec.Struct, frozen=True):
    """Nothing of the message is kept; the sender may ask an owner to be let in."""

    verdicts: tuple[Verdict, ...] = ()


Decision = Admit | Refuse | Pair

BY_THE_EDGE = Admit("edge")


def policy(config: AccessConfig, owners: Collection[str]) -> Policy:
    """Make what decides about one connector.

    Args:
        config: what the settings say of it.
        owners: who runs this company, each as `connector/sender_id`.
    """
    return Policy(
        config,
        frozenset(owners),
        allowed=globs(config.allowed),
        roles=globs(config.allowed_roles),
        denied=globs(config.denied),
        chats=globs(config.allowed_chats),
    )


def admit(
    inbound: Inbound,
    policy: Policy | None,
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
    verdicts: list[Verdict] = []
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
            return Refuse(reason, waits, tuple(verdicts))
    if may_pair(inbound, policy):
        return Pair(tuple(verdicts))
    return Refuse("unknown_sender", waits, tuple(verdicts))


def may_pair(inbound: Inbound, policy: Policy) -> bool:
    """Whether a stranger may ask to be let in: a person, in a direct chat."""
    is_person = bool(inbound.sender_id) and not inbound.is_bot
    return policy.config.people == "pairing" and inbound.is_direct and is_person


_ADMITTED: dict[RuleName, Admitted] = {
    "owner": "owner",
    "group": "group",
    "anyone": "anyone",
    "listed": "listed",
    "role": "role",
    "paired": "paired",
}


def _refused(rule: RuleName, policy: Policy) -> Reason:
    if rule == "denied":
        return "denied_sender"
    return "group_dropped" if policy.config.groups == "drop" else "unknown_chat"


def _place(inbound: Inbound, policy: Policy) -> Verdict:
    if inbound.is_direct:
        return Verdict("place", "pass", "a direct chat")
    if policy.config.groups == "drop":
        return Verdict("place", "refuse", "groups are dropped")
    fitting = policy.chats.fit(inbound.address.chat)
    if fitting:
        return Verdict("place", "pass", f"this group fits {fitting!r}")
    return Verdict("place", "refuse", "this group is none of allowed_chats")


def _owner(inbound: Inbound, policy: Policy) -> Verdict:
    if inbound.sender_id and person(inbound) in policy.owners:
        return Verdict("owner", "admit", "an owner")
    return Verdict("owner", "pass", "no owner")


def _denied(inbound: Inbound, policy: Policy) -> Verdict:
    fitting = policy.denied.fit(inbound.sender_id)
    if fitting:
        return Verdict("denied", "refuse", f"fits {fitting!r} of denied")
    return Verdict("denied", "pass", "not denied")


def _everyone(inbound: Inbound, policy: Policy) -> Verdict:
    if not inbound.is_direct and policy.config.group_people == "everyone":
        return Verdict("group", "admit", "everyone may write in this group")
    if policy.config.people == "anyone":
        return Verdict("anyone", "admit", "anyone may write")
    return Verdict("group", "pass", "only who is admitted may write here")


def _known(
    inbound: Inbound, policy: Policy, *, is_paired: bool
) -> tuple[Verdict, Verdict, Verdict]:
    fitting = policy.allowed.fit(inbound.sender_id) if inbound.sender_id else ""
    listed = (
        Verdict("listed", "admit", f"fits {fitting!r} of allowed")
        if fitting
        else Verdict("listed", "pass", "not listed")
    )
    role = next((each for each in inbound.roles if policy.roles.fit(each)), "")
    by_role = (
        Verdict("role", "admit", f"is {role!r} here")
        if role
        else Verdict("role", "pass", "no role that is allowed")
    )
    paired = (
        Verdict("paired", "admit", "was let in by an owner")
        if is_paired
        else Verdict("paired", "pass", "was not let in by an owner")
    )
    return listed, by_role, paired
