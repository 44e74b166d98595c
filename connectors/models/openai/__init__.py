"""Models that speak OpenAI's formats, of OpenAI or anybody else.

Made by `model` for `kind = "openai"`, which is Chat Completions, and for `kind =
"openai_responses"`, the Responses API. Begin with `request` (what is sent) and `model`
(what comes back, and how failures are sorted by what can be done about them);
`responses` has both of the Responses API.
"""

__all__ = ["model", "request"]
