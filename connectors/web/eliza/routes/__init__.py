"""The routes of the ElizaOS API, one module for each part of it; on the edge's loop.

Each `…Routes` class is made from the services and gives its routes; `app.ROUTES` lists
them. A handler reads the request (`request.ElizaCall`), asks a service on the kernel's
side, and shows the result. Begin with `channels.py`.
"""

__all__ = ["agents", "audio", "channels", "memories", "messages", "sessions"]
