"""Telegram: a bot for each agent, over the Bot API.

Begin with `transport.py`; `account.py` talks to Telegram, `listener.py` asks for what
is new or has it brought, `inbound.py` brings in what people write, `senders.py` knows
which bots are where.

Source of all protocol facts: core.telegram.org/bots/api, and what its server and client
libraries do.
"""
