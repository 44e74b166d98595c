"""The embedded model: answers by rules of a file, without a network or a key.

Made by `model` for `kind = "scripted"`; the first run and most tests use it. Begin with
`script`, which reads the rules and fills answers in.
"""

__all__ = [
    "script",
]
