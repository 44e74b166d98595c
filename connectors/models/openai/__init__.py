"""Models that speak OpenAI's Chat Completions, of OpenAI or anybody else.

Made by `model` for `kind = "openai"`. Begin with `request` (what is sent) and `stream`
(what comes back); `errors` sorts failures by what can be done about them.
"""

__all__ = [
    "errors",
    "model",
    "request",
]
