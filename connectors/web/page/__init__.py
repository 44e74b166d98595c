"""The web page: chat with agents and in rooms, and a look at all that runs.

Begin with `transport.py`, the kernel's side of it, and `site.py`, the routes on the
edge's loop. Each part of the page beside the chat is a `View` (`views.py` says how one
is added; `shelf.py` lists them). There is no build step: templates and static files
are served as they lie here.

Imported only for settings with a page, and what draws it (Jinja2) at the first request.
"""
