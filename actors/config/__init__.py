"""Settings of the domain: agents, conversations, routes, limits.

Only types, bounds and defaults, in one module per table of the settings file.
`runtime/config/loader.py` reads files. `connectors/settings/load.py` checks that the
names used here exist (models, tools, agents). `config/default.toml` lists every field
with its default, and a test keeps both equal.
"""

__all__ = [
    "access",
    "agents",
    "collaboration",
    "limits",
    "memory",
    "presence",
    "prompt",
    "routes",
    "schedule",
    "sessions",
    "values",
]
