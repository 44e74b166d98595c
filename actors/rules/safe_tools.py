"""Which tools an agent has while another one speaks to it (F173, F270, F326); pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actors.collaboration_config import ToolsThere
    from actors.messages import ToolSpec

OF_MEMORY = frozenset({"memory_search", "save_memory"})

DELEGATE = "delegate"
COLLABORATE = "collaborate"
CONSULT = "consult"

OF_COLLEAGUES = frozenset({DELEGATE, COLLABORATE, CONSULT})
"""By which an agent reaches others: who is spoken to has none, so that no question
becomes a circle of them."""

NOT_THERE = "it is not there while another agent asks"
"""What a model is told of all others."""


def is_safe(tool: ToolSpec, there: ToolsThere) -> bool:
    """Whether a tool is there for who is spoken to by another agent.

    Args:
        tool: what it is called, and the worst it can do.
        there: what the settings leave.
    """
    if there == "memory":
        return tool.name in OF_MEMORY
    reads = tool.effect == "read" and tool.name not in OF_COLLEAGUES
    return there == "read" and reads
