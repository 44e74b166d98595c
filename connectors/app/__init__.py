"""Makes a running company from settings.

`app.open_app` opens one; `assembly.py` says what the settings mean for the domain;
`reload/` takes changed settings over while the company runs; `nodes.py` has several
processes be nodes of one company, and `sharing.py` has them share its work.
"""

__all__ = [
    "app",
    "forwarding",
    "hooks",
    "kit",
    "models",
    "nodes",
    "reload",
    "sharing",
    "shutdown",
    "tool_sources",
    "webhooks",
]
