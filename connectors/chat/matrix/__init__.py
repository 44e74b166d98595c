"""Matrix: several agents' accounts on one homeserver, in unencrypted rooms.

Begin with `transport.py`; `account.py` talks to the homeserver, `listener.py` keeps one
account in step with it, `inbound.py` brings in what people write, `rooms.py` knows who
is where.

Source of all protocol facts: spec.matrix.org, client-server API, v1.11 and later.
"""
