"""Models of Anthropic, over their Messages API.

Made by `model` for `kind = "anthropic"`. Begin with `request` (what is sent) and
`stream` (what comes back); `errors` sorts failures by what can be done about them.
"""

__all__ = [
    "model",
]
