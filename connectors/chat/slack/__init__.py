"""Slack: several agents' apps in one workspace, by Socket Mode or the Events API.

Begin with `transport.py`; `account.py` says what is asked of Slack, and `sdk.py` asks
it through slack_sdk on the asyncio loop. `listener.py` follows one app, and takes what
Slack sends to the HTTP server, `inbound.py` brings in what people write.

Source of all protocol facts: docs.slack.dev, and slack_sdk 3.
"""
