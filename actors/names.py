"""What the actors of the tree are called; messages find them by these names."""

from __future__ import annotations

ROOT = "callboard"
KEEPER = f"{ROOT}/store"
LIMITER = f"{ROOT}/limiter"
MODELS = f"{ROOT}/models"
ROUTER = f"{ROOT}/router"
BOUNCE = f"{ROOT}/bounce"


def agent(name: str) -> str:
    """Name the actor of an agent."""
    return f"{ROOT}/agents/{name}/agent"


def sessions(agent_name: str) -> str:
    """Name the supervisor of an agent's sessions."""
    return f"{ROOT}/agents/{agent_name}/sessions"


def turns(agent_name: str) -> str:
    """Name the supervisor of an agent's running turns."""
    return f"{ROOT}/agents/{agent_name}/turns"


def connector(name: str) -> str:
    """Name the actor of a connector account."""
    return f"{ROOT}/connectors/{name}/connector"


def couriers(connector_name: str) -> str:
    """Name the supervisor of a connector's couriers."""
    return f"{ROOT}/connectors/{connector_name}/couriers"
