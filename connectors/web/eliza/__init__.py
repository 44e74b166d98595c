"""The ElizaOS messaging API: programs and pages that speak it talk to agents here.

A superset: the official shapes of @elizaos/server 1.7.2, and what its own client sends
and that server refuses. Spoken of as in that API: a *channel* is a chat, a *server* a
group of channels, a *participant* whoever is in a channel, by UUID.
"""
