"""The plain WebSocket: JSON frames, without any platform between people and agents.

On trio from the socket up: there is no library here that needs another loop, and what
a client does is tested on virtual time.
"""
