"""What a tool call needs (nothing, an approval, or it is denied), and whose yes counts.

Pure. Four things decide, the first that says something counts: the tables
`[[permissions]]` of the settings, from the top; for work that another agent handed on,
how much of it may be done at all; what the agent's own table says of the tool; and the
agent's level of autonomy.

Each approval has a short id that people can type. It is made from the call, so that the
question is still answered by the same id when it is asked again after a restart.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from actors.config.limits import PermissionConfig
from actors.messages.inbound import Address, ToolSpec
from actors.rules.text.codes import LETTERS

Need = Literal["allow", "ask", "deny"]
Effect = Literal["read", "write", "run"]
Autonomy = Literal["read-only", "supervised", "full"]
Delegated = Literal["none", "read", "write", "all"]

LEVELS: dict[Autonomy, dict[Effect, Need]] = {
    "read-only": {"read": "allow", "write": "deny", "run": "deny"},
    "supervised": {"read": "allow", "write": "ask", "run": "ask"},
    "full": {"read": "allow", "write": "allow", "run": "allow"},
}
"""What each level says of a call, by the worst that it can do."""

REACH: dict[Delegated, frozenset[Effect]] = {
    "none": frozenset(),
    "read": frozenset({"read"}),
    "write": frozenset({"read", "write"}),
    "all": frozenset({"read", "write", "run"}),
}
"""Which calls an agent may make on behalf of another one."""

STRICTEST: tuple[Need, ...] = ("deny", "ask", "allow")


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The agent that wants to call, and the person it works for."""

    agent: str
    connector: str
    chat: str
    sender: str
    """The person whose words it goes back to."""

    is_delegated: bool = False
    """Whether another agent asked for it."""


class Freedom(msgspec.Struct, frozen=True, kw_only=True):
    """How much an agent may do without approval."""

    autonomy: Autonomy = "supervised"
    tools: Mapping[str, Need] = {}
    """By patterns of tools' names; the strictest that fits counts."""

    delegated: Delegated = "read"


class PermissionDecision(msgspec.Struct, frozen=True):
    """What a tool call needs."""

    need: Need
    why: str = ""
    """For the model, if it is denied."""


ALLOWED = PermissionDecision("allow")


def judge(
    tool: ToolSpec,
    caller: Caller,
    freedom: Freedom,
    tables: Iterable[PermissionConfig],
) -> PermissionDecision:
    """Say what a call of this tool needs."""
    for table in tables:
        need = _of_table(table, tool.name, caller)
        if need is not None:
            return PermissionDecision(
                need, "the operator's rules forbid it in this chat"
            )
    if caller.is_delegated and tool.effect not in REACH[freedom.delegated]:
        return PermissionDecision(
            "deny", "it is not allowed in work that another agent handed on"
        )
    own = {need for name, need in freedom.tools.items() if fnmatchcase(tool.name, name)}
    for need in STRICTEST:
        if need in own:
            return PermissionDecision(need, "this agent may not use it")
    need = LEVELS[freedom.autonomy][tool.effect]
    return PermissionDecision(need, f"this agent is {freedom.autonomy}")


def _of_table(table: PermissionConfig, tool: str, caller: Caller) -> Need | None:
    is_here = (
        fnmatchcase(caller.agent, table.agent)
        and fnmatchcase(caller.connector, table.connector)
        and fnmatchcase(caller.chat, table.chat)
        and fnmatchcase(caller.sender, table.sender)
    )
    if not is_here:
        return None
    if _names(table.deny, tool):
        return "deny"  # also in work handed on: it is no way round
    if table.delegated != caller.is_delegated:
        return None
    if _names(table.ask, tool):
        return "ask"
    return "allow" if _names(table.allow, tool) else None


def _names(patterns: tuple[str, ...], tool: str) -> bool:
    return any(fnmatchcase(tool, pattern) for pattern in patterns)


SHORTEST = 2
"""Letters of an id, while it is the only one of its kind."""

SHORTEST_OF_NODES = 4
"""Where other nodes ask in the same chat: that none of them has it is only likely."""

YES = frozenset({"yes", "y", "ok", "okay", "approve", "approved"})
NO = frozenset({"no", "n", "deny", "denied", "nope"})


MOST_NAMED = 10
"""Questions named in one line."""


class OpenApproval(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call that waits for an approval."""

    id: str
    turn_id: str
    key: str
    """Says which call of the message it is."""

    agent: str
    asker: str
    """Whose words the call goes back to, as `connector/sender_id`."""

    tool: str
    effect: Literal["read", "write", "run"]
    address: Address
    """Where the question stands."""


class PostedApproval(msgspec.Struct, frozen=True):
    """A call that waits, and whether people can have read the question."""

    approval: OpenApproval
    shown_at: float = math.inf
    """Since when the question stands in its chat, as `Services.arrival_at` has it;
    never: it does not yet."""


class ApprovalTerms(msgspec.Struct, frozen=True):
    """Whose answers count, and from when on."""

    approvers: frozenset[str]
    """Who may approve anything, each as `connector/sender_id`."""

    asker_may: tuple[str, ...]
    """Effects of calls that the asking person may approve."""

    plain_after: float = 1.0
    """Seconds a question has stood before a word that names no id answers it."""

    def admits(self, approval: OpenApproval, who: str) -> bool:
        """Whether somebody's word counts; `who` as `connector/sender_id`."""
        if who in self.approvers:
            return True
        return who == approval.asker and approval.effect in self.asker_may


class ApprovalRuling(msgspec.Struct, frozen=True):
    """What somebody's answer decides."""

    approval: OpenApproval
    is_approved: bool
    is_lasting: bool = False


class ApprovalRefused(msgspec.Struct, frozen=True):
    """Why somebody's answer decides nothing."""

    reason: Literal["unknown", "not_allowed", "ambiguous", "too_early"]
    text: str
    """Reply to the person who gave the command."""

    agent: str = ""
    """Who waits for such words; empty: nobody does."""


def short_id(seed: str, taken: Collection[str], shortest: int = SHORTEST) -> str:
    """Make an id that nobody has: the same for the same call, if that can be."""
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest(), "big")
    letters = ""
    while len(letters) < shortest or letters in taken:
        number, place = divmod(number, len(LETTERS))
        letters += LETTERS[place]
    return letters


def is_there(approval: OpenApproval, address: Address) -> bool:
    """Whether a question stands in a chat, in whatever thread."""
    place = approval.address
    return (place.connector, place.chat) == (address.connector, address.chat)


def plain_word(text: str) -> bool | None:
    """Read a message that is nothing but a yes or a no; None if it is not."""
    word = text.strip().rstrip(".!").casefold()
    if word in YES:
        return True
    return False if word in NO else None


def one_meant(
    here: Sequence[PostedApproval], arrived_at: float, plain_after: float
) -> OpenApproval | ApprovalRefused | None:
    """Find the question that words without an id answer.

    Words that were written before the question could be read are not an answer to it.

    Args:
        here: what waits at the address of the words.
        arrived_at: when the words came in; see `Services.arrival_at`.
        plain_after: see `ApprovalTerms`.

    Returns:
        The question; why none of them can be told; None: they are no answer.
    """
    if not any(each.shown_at <= arrived_at for each in here):
        return None
    first = here[0].approval
    if len(here) > 1:
        named = ", ".join(_named(each.approval) for each in here[:MOST_NAMED])
        more = f" and {len(here) - MOST_NAMED} more" if len(here) > MOST_NAMED else ""
        text = (
            f"{len(here)} requests are open here: {named}{more}. Say which one:"
            f" /approve {first.id} or /deny {first.id}, for example."
        )
        return ApprovalRefused("ambiguous", text, first.agent)
    if arrived_at < here[0].shown_at + plain_after:
        text = (
            f"That came so soon after the question {first.id} that it may have been"
            f" meant for something else. Say it again, or /approve {first.id} or"
            f" /deny {first.id}."
        )
        return ApprovalRefused("too_early", text, first.agent)
    return first


def _named(approval: OpenApproval) -> str:
    return f"{approval.id} ({approval.agent}, `{approval.tool}`)"
