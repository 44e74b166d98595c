"""The domain: everything that a company of agents is and does, without I/O.

Each folder is a subject; `messages` and `protocol` are what they say to each other,
`ports` and `transport` what they expect of the edges. `connectors/app` starts it. Begin
with `tree`, the supervision tree, then follow a message: `inbound`, `session`, `turn`,
`outbound`.
"""

__all__ = [
    "agents",
    "approvals",
    "collaboration",
    "commands",
    "config",
    "errors",
    "hooks",
    "inbound",
    "journal",
    "memory",
    "messages",
    "metrics",
    "models",
    "names",
    "operations",
    "outbound",
    "people",
    "ports",
    "protocol",
    "rules",
    "schedule",
    "services",
    "session",
    "transport",
    "tree",
    "turn",
    "webhooks",
]
