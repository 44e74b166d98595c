"""Reads what comes with messages: pictures, recordings, documents.

The turn asks through the port `MediaReader`. Begin with `reader`; `extract` is the
program that takes the text out of a document, and runs in the sandbox.
"""

__all__ = [
    "reader",
]
