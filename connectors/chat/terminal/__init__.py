"""The terminal: people talk to the agents from a shell, or a script plays a room.

`callboard chat` and `callboard play` use it. Begin with `transport.py`, the company's
end; `client.py` is the terminal's end, with what they say to each other. `screen.py` is
what people see, `plain.py` what pipes do; `playback.py` reads a play and plays it.
"""

__all__ = ["client", "plain", "platform", "playback", "screen", "transport"]
