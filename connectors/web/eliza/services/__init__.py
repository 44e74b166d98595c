"""What the ElizaOS channel stores and does; on the kernel's side.

Routes and sockets ask these services across the bridge. Each checks what the caller may
see or do and raises `ApiError` if not. Begin with `channels.py` (servers and channels)
and `messages.py` (how a message is accepted, stored and announced).
"""

__all__ = ["channels", "memories", "messages", "runs", "sessions", "uploads"]
