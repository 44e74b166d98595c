"""The ElizaOS messaging API: programs and pages that speak it talk to agents here.

It accepts the shapes of @elizaos/server 1.7.2, and those that only its client sends. In
the words of that API a *channel* is a chat, a *server* a group of channels, and a
*participant* a person or agent in a channel, by UUID. Begin with `app.py`, which puts
services and routes together, and `transport.py`, the kernel's side.
"""

__all__ = ["messages", "platform", "services"]
