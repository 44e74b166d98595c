"""Telegram: a bot for each agent, over the Bot API.

Begin with `transport.py`. Pure are `wire`, `errors`, `entities`, `updates`, `names` and
`content`; what we send is written by `connectors/chat/markup/telegram.py`. `api` and
`carrier` talk; `polling` asks for what is new, `hooked` has it brought; `listening`
keeps one bot heard, `arrivals` and `handing` bring in what people write.

Source of all wire facts: core.telegram.org/bots/api, and what its server and client
libraries do.
"""
