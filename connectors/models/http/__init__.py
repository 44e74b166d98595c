"""How models are asked over HTTP, whatever format their provider speaks.

Begin with `client.py`, the model that vendors' formats are given to: it bounds one
request in time and reads what is streamed. `connections.py` keeps connections open and
says what an account's requests carry. The vendors' modules hold the formats.
"""

__all__ = ["client", "connections"]
