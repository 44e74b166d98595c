"""The HTTP server for programs that speak OpenAI's Chat Completions API.

Each agent is a model. The same server has `/metrics`, `/readyz`, incoming webhooks and
the calls of chat platforms. Begin with `transport.py`, the kernel's side, and
`completions.py`, one request from its body to its answer; `protocol.py` is the format.
"""
