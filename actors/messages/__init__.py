"""What everybody talks about: messages of people, answers, commands, usage.

Frozen structs and pure rules that all other packages of the domain, and the edges, use.
Begin with `inbound` (a message on its way in) and `deliveries` (one on its way out);
`state` says what becomes of a message that fails.
"""

__all__ = [
    "busy_policies",
    "commands",
    "deliveries",
    "expiry",
    "inbound",
    "keys",
    "priority",
    "progress",
    "state",
    "tracing",
    "usage",
]
