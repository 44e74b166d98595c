"""Webhooks in both directions: events that come in, and events that are sent.

In: an edge checks the signature (`signature.py`), writes the task (`task.py`) and asks
`intake.py`, the actor that stores it. Out: `notifier.py`, one actor for each receiver,
sends the events that `actors/journal/notices.py` stores, with the retries of
`retry.py`. Begin with `intake.py` or `notifier.py`.
"""

__all__ = ["intake", "messages", "notifier", "retry", "signature", "task"]
