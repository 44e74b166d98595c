"""The one door between trio and libraries that need asyncio.

Transports of asyncio libraries and the web servers run on the bridge's loop, in a
thread of its own. `bridge` is all of it.
"""

__all__ = ["bridge"]
