"""The terminal: one person talks to the agents, or a script plays a conversation.

`callboard chat` and `callboard play` use it. Begin with `terminal.py`; `console.py`
reads and prints lines, `script.py` reads a play, and `playback.py` plays it.
"""

__all__ = ["console", "platform", "playback", "script", "terminal"]
