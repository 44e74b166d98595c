"""Inline directives in a model's answer, such as `[MEMORY:…]`; pure.

The turn takes an answer apart with `parser`; `sanitizer` does the same while the answer
streams, so that no directive is ever shown. Begin with `parser`, then `tags` (which
directives there are) and `actions` (what each asks for).
"""

__all__ = [
    "actions",
    "descriptions",
    "outcomes",
    "parser",
    "sanitizer",
    "tags",
]
