"""WhatsApp's Cloud API: agents with numbers of their own, for people one by one.

Begin with `transport.py`; `account.py` talks to Meta's Graph API, `inbound.py` takes
what Meta brings, `transport.py` sends answers.

Source of all protocol facts: Meta, "WhatsApp Business Platform, Cloud API", reference
and webhooks; what was seen otherwise is said at its place.
"""
