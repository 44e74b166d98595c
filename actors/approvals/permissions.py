"""What a tool call needs: nothing, an approval, or it is denied; pure.

Four things decide, the first that says something counts: the tables `[[permissions]]`
of the settings, from the top; for work that another agent handed on, how much of it
may be done at all; what the agent's own table says of the tool; and the
agent's level of autonomy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from actors.config.limits import PermissionConfig
from actors.messages.inbound import ToolSpec

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
