"""Tool servers that speak the Model Context Protocol, over pipes or HTTP.

`tree` supervises the servers, and `source` offers their tools to agents. Begin with
`server` (one server, restarted when it fails), then `session` (the protocol) and
`stdio` and `http`, the two ways to a server.
"""

__all__ = ["doctor", "limits", "messages", "metrics", "source", "tree"]
