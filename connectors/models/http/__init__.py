"""How models are asked over HTTP, whatever format their provider speaks.

Begin with `client.py`, the model that vendors' formats are given to. `connections.py`
keeps connections open, `exchange.py` bounds one request in time, `reading.py` reads
what is streamed. The vendors' packages beside this one hold the formats.
"""

__all__ = ["account", "client", "connections", "reading", "single_answer"]
