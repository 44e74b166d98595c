"""Models of Google, over the Gemini API.

Made by `model` for `kind = "google"`. Begin with `request` (what is sent) and `stream`
(what comes back); `schema` fits tools' schemas to what the API takes.
"""

__all__ = [
    "model",
]
