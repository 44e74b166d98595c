"""The one door between trio and libraries that need asyncio.

Transports of asyncio libraries and the web servers run on the bridge's loop, in a
thread of its own. Begin with `bridge`; `crossing` has the errors and bounds of a call
from one side to the other.
"""

__all__ = [
    "bridge",
    "crossing",
]
