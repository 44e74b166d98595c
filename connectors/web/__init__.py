"""HTTP for programs, scrapers and browsers, on the edge's asyncio loop.

Three servers, each a connector of its own: `openai` (OpenAI's API, metrics, webhooks),
`eliza` (the ElizaOS messaging API and Socket.IO) and `page` (the web page). What they
share lies here: begin with `server.py` (uvicorn and its limits), then `request.py`
(access, bodies, questions to the kernel) and `history.py` (messages in the database).
"""

__all__ = ["eliza", "operations", "page", "peers"]
