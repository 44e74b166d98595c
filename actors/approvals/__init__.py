"""Which tool calls need a person's leave, who may give it, and what proves a call.

Turns ask `permissions` before each call, and sessions read answers by it; `board` keeps
the open questions of all conversations. `receipts` are what is stored of a finished
call. All but the board are pure; begin with `permissions`.
"""

__all__ = ["board", "permissions", "receipts"]
