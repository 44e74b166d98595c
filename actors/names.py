"""What the actors of the tree are called; messages find them by these names."""

from __future__ import annotations

from functools import lru_cache

ROOT = "callboard"
KEEPER = f"{ROOT}/store"
LIMITER = f"{ROOT}/limiter"
MODELS = f"{ROOT}/models"
PEOPLE = f"{ROOT}/people"
WARDEN = f"{ROOT}/warden"
STAFF = f"{ROOT}/staff"
PAIRING = f"{ROOT}/pairing"
OWNERS = f"{ROOT}/owners"
CONNECTORS = f"{ROOT}/connectors"
AGENTS = f"{ROOT}/agents"
ROUTER = f"{ROOT}/router"
CHECKS = f"{ROOT}/checks"
UNDELIVERABLE = f"{ROOT}/bounce"
SCHEDULER = f"{ROOT}/scheduler"
COLLABORATION = f"{ROOT}/collaboration"
WEBHOOKS = f"{ROOT}/webhooks"
NOTIFIERS = f"{ROOT}/notifiers"
HOOKS = f"{ROOT}/hooks"
HOOK_QUESTIONS = f"{HOOKS}/questions"


_kept = lru_cache(maxsize=1_024)
"""Why kept: each message asks for a dozen of the same few names."""


def branch(agent_name: str) -> str:
    """Name the supervisor of all that belongs to an agent."""
    return f"{AGENTS}/{agent_name}"


def hook(name: str) -> str:
    """Name the actor of a hook."""
    return f"{HOOKS}/own/{name}/hook"


@_kept
def agent(name: str) -> str:
    """Name the actor of an agent."""
    return f"{ROOT}/agents/{name}/agent"


@_kept
def sessions(agent_name: str) -> str:
    """Name the supervisor of an agent's sessions."""
    return f"{ROOT}/agents/{agent_name}/sessions"


@_kept
def turns(agent_name: str) -> str:
    """Name the supervisor of an agent's running turns."""
    return f"{ROOT}/agents/{agent_name}/turns"


def condensers(agent_name: str) -> str:
    """Name the supervisor of who sums up an agent's conversations."""
    return f"{ROOT}/agents/{agent_name}/condensers"


def consultants(agent_name: str) -> str:
    """Name the supervisor of who answers an agent's colleagues behind the scenes."""
    return f"{ROOT}/agents/{agent_name}/consultants"


@_kept
def connector(name: str) -> str:
    """Name the actor of a connector account."""
    return f"{ROOT}/connectors/{name}/connector"


@_kept
def couriers(connector_name: str) -> str:
    """Name the supervisor of a connector's couriers."""
    return f"{ROOT}/connectors/{connector_name}/couriers"


def acknowledgements(connector_name: str) -> str:
    """Name the supervisor of the signs at a connector's messages."""
    return f"{ROOT}/connectors/{connector_name}/acknowledgements"


@_kept
def memory(agent_name: str) -> str:
    """Name the actor that remembers for an agent."""
    return f"{ROOT}/agents/{agent_name}/memory"


def recollections(agent_name: str) -> str:
    """Name the supervisor of what an agent's memory is being asked."""
    return f"{ROOT}/agents/{agent_name}/recollections"


def embedding(agent_name: str) -> str:
    """Name the actor that makes vectors of what an agent remembers."""
    return f"{ROOT}/agents/{agent_name}/embedding"


def scribe(agent_name: str) -> str:
    """Name the actor that writes an agent's days down."""
    return f"{ROOT}/agents/{agent_name}/scribe"


def notifier(webhook: str) -> str:
    """Name the actor that sends a webhook's events."""
    return f"{NOTIFIERS}/{webhook}"
