"""Embedders: vectors of texts, for memory that is searched by meaning.

The memory asks through the port `Embedder`. Begin with `local`, the embedded one that
needs no network; `http` speaks to OpenAI's endpoint and to Ollama's.
"""

__all__ = [
    "local",
]
