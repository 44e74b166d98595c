"""Tool servers that speak the Model Context Protocol, over pipes or HTTP.

`tree` supervises the servers, and `source` offers their tools to agents. Begin with
`session` (one server, restarted when it fails), then `connection` (what carries a
session) and `protocol`, the only door to the protocol's library.
"""

__all__ = ["connection", "doctor", "session", "source", "tree"]
