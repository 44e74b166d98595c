"""The web page: chat with agents and in rooms, and a look at all that runs.

Begin with `transport.py`, the kernel's side of it, and `site.py`, which puts the routes
together on the edge's loop. Each part of the page beside the chat is a view: `views`
lists them, `views/base.py` says how one is added. There is no build step: templates and
static files are served as they lie here. Jinja2 is imported at the first request.
"""

__all__ = [
    "login_rows",
    "platform",
    "views",
]
