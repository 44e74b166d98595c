"""Models that speak OpenAI's formats, of OpenAI or anybody else.

Made by `model` for `kind = "openai"`, which is Chat Completions. Begin with `request`
(what is sent) and `stream` (what comes back); `errors` sorts failures by what can be
done about them. For `kind = "openai_responses"`, the Responses API, begin with
`responses_request` and `responses_stream`.
"""

__all__ = [
    "errors",
    "model",
    "request",
]
