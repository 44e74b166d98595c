"""The chat on the page: direct chats of a person with an agent, and rooms.

`service.py` accepts, stores and announces messages on the kernel's side. On the edge's
loop, `hub.py` sends changes to open tabs and `routes.py` answers requests. `chats.py`
says which chats exist and who may read them.
"""

__all__ = [
    "chats",
    "files",
    "hub",
    "messages",
    "routes",
    "service",
]
