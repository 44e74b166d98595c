"""What agents remember: facts, states, lessons, summaries, and their notebooks.

Turns ask the actor in `memory` for what a prompt needs; sessions have notes reviewed,
and store them in the commit of the answer. Begin with `messages`, then `scopes` (whose
memory is meant) and `recall` (which facts a model is shown).
"""

__all__ = [
    "forgetting",
    "kit",
    "memory",
    "messages",
    "note_rules",
    "notebook",
    "notes",
    "recall",
    "scopes",
]
