"""The terminal: people talk to the agents from a shell, or a script plays a room.

`callboard chat` and `callboard play` use it. Begin with `transport.py`, the company's
end; `client.py` is the terminal's end, `frames.py` what they say to each other.
`screen.py` is what people see, `plain.py` and `console.py` what pipes do; `script.py`
reads a play, and `playback.py` plays it.
"""

__all__ = [
    "client",
    "console",
    "frames",
    "plain",
    "platform",
    "playback",
    "screen",
    "script",
    "transport",
]
