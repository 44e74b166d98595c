"""Models of all vendors behind the port `Model`, embedders, and audio.

`app` makes them from the settings: `connectors/config/models.py` names the module of
each kind, whose `make_model` makes it. Begin with `scripted`; a model over HTTP is a
`format` that `client` speaks, and `ollama` is the shortest.
"""

__all__ = [
    "anthropic",
    "embedders",
    "format",
    "google",
    "http",
    "ollama",
    "openai",
    "program",
    "scripted",
]
