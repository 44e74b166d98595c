"""What a model is told: system prompt, transcript, tools, and when it is too much.

The turn builds each request with `build`; `callboard prompt` shows the same. Begin with
`build` (the parts of a system prompt), then `transcript` (earlier lines)
and `compaction` (when and how a conversation is summarised).
"""

__all__ = [
    "brief",
    "build",
    "compaction",
    "estimate",
    "skills",
    "texts",
    "tools",
    "transcript",
    "untrusted",
    "window",
]
