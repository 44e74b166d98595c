"""Makes a running company from settings.

`app.open_app` opens one; `assembly.py` says what the settings mean for the domain;
`reload/` takes changed settings over while the company runs; `nodes.py` has several
processes stand by for each other.
"""

__all__ = [
    "app",
    "forwarding",
    "hooks",
    "kit",
    "models",
    "nodes",
    "reload",
    "shutdown",
    "tool_sources",
    "webhooks",
]
