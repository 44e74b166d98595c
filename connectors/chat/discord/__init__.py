"""Discord: several agents' bots, in servers and in direct messages.

Begin with `transport.py`. Pure are `payloads`, `wire`, `content`, `marks`, `slash` and
`snowflakes`. `bot` is the only file that runs on the asyncio edge: discord.py keeps the
gateway's session and the limits of requests there; the payloads of messages are read by
ourselves, so that none that is odd can end a bot for good. `listening` keeps one bot
going, `intake` takes what it hears, `handing` hands it in.

Source of all wire facts: the developers' reference (discord.com/developers/docs), and
discord.py 2.7 as measured.
"""
