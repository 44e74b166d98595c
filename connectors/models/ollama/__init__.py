"""Models of an Ollama server; the shortest of the models over HTTP.

Made by `model` for `kind = "ollama"`. Begin here to add a model over HTTP.
"""

__all__ = [
    "model",
]
