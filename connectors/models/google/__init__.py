"""Models of Google, over the Gemini API.

Made by `model` for `kind = "google"`. Begin with `request` (what is sent, the
schemas of tools with it) and `stream` (what comes back).
"""

__all__ = [
    "model",
]
