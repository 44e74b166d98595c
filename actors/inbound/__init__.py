"""A message's way in: stored first, then routed to the agents it is for.

`connector.py` (one actor for each account) stores what people write; `router.py` (one
actor) decides which agents hear it; `undeliverable.py` answers for messages that no
actor could handle. Transports hold a `Listener`; `actors/tree.py` starts the actors.
Begin with `connector.py`, then `router.py`.
"""

__all__ = ["connector", "listener", "relevance", "router", "undeliverable"]
