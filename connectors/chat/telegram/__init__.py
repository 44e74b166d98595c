"""Telegram, as far as it is pure: what its servers send, and what that says.

`wire.py` has the shapes, `entities.py` the marks in a text, `updates.py` says what an
update is to us. What we send there is written by `connectors/chat/markup/telegram.py`,
and what may be sent stands in `connectors/chat/limits.py`.
"""
