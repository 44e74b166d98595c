"""Who hears and answers what in a group chat; pure.

The router asks before it wakes a session. Begin with `activation` (does an agent hear a
message, and why); `mentions` finds names in a text, `routes` applies the settings'
routes, `explain` says for operators why something was or was not heard.
"""

__all__ = [
    "access",
    "activation",
    "addressing",
    "assignments",
    "explain",
    "mentions",
    "overheard",
    "relevance",
    "reply_windows",
    "routes",
]
