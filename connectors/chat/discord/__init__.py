"""Discord: several agents' bots, in servers and in direct messages.

Begin with `transport.py`; `listener.py` follows one bot, `inbound.py` brings its
messages in, `senders.py` chooses whose bot sends. Only `client.py` runs on the asyncio
loop: discord.py keeps the gateway's session and the limits of requests there. This
package reads the payloads of messages itself, so that no odd one ends a bot for good.

Source of all protocol facts: the developers' reference (discord.com/developers/docs),
and discord.py 2.7 as measured.
"""
