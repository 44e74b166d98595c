"""What is stored of conversations: events, answers, outbox rows, records, notices.

Nearly everything here is pure: it makes rows and commits from values, and reads them
back. Sessions, the router and commands use it. Begin with `answers.py` (one answer and
its commit), `history.py` (a conversation rebuilt from its events) and `commits.py`
(all other rows).
"""

__all__ = [
    "answers",
    "attachments",
    "clock",
    "commits",
    "history",
    "notices",
    "outbox",
    "parts",
    "plan",
    "rebuild",
    "records",
    "splitting",
    "unsettled",
]
