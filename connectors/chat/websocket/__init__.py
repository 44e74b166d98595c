"""The plain WebSocket: JSON frames, without any platform between people and agents.

Begin with `transport.py`; `session.py` serves one connection. It runs on trio from the
socket up: no library here needs another loop, and tests play whatever a client does on
virtual time.
"""
