"""QQ: agents' bots by QQ's official bot platform, for chats, groups and channels.

`listener.py` follows one bot's gateway, `events.py` reads what comes, `transport.py`
knows which messages may still be answered, `api.py` asks.

Source of all protocol facts: QQ, "QQ机器人" (bot.q.qq.com/wiki/develop/api-v2) and its
SDK botpy; what only other bots' reports tell is marked as seen.
"""
