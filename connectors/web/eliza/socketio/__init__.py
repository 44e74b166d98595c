"""Socket.IO for clients of the ElizaOS API; on the edge's loop.

`server.py` holds the connections, answers requests of clients and sends events in
order; `logs.py` streams lines of the program's log to clients that may see it.
"""

__all__ = [
    "logs",
    "server",
]
