"""Makes a running company from settings.

`app.open_app` opens one; `assembly.py` says what the settings mean for the domain;
`reload/` takes changed settings over while the company runs.
"""

__all__ = [
    "app",
    "hooks",
    "kit",
    "models",
    "reload",
    "shutdown",
    "tool_sources",
    "webhooks",
]
