"""Answers on their way out: delivered once, in order, with retries and drafts.

`courier.py` has one actor for each chat. It sends what the outbox holds, retries by
the pure rules of `retry.py`, and shows drafts (`drafts.py`, `draft_rules.py`) and
typing. `reactions.py` sets the reaction at a message. Connectors start and tell all of
them. `hints.py` shows the same at the node that has the connector, if another one works
on the chat. Begin with `courier.py`.
"""

__all__ = ["courier", "draft_rules", "hints", "reactions", "retry"]
