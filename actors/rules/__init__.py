"""Pure rules that several actors share: no clock, no dice, no store, no actor.

Rules of one actor alone stand beside that actor. Begin with `text` (words), `markers`
(inline directives in answers), `prompt` (what a model is told) or `groups` (who hears
what in a group chat).
"""

__all__ = [
    "groups",
    "markers",
    "prompt",
    "text",
]
