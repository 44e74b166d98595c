"""WhatsApp's Cloud API: agents with numbers of their own, for people one by one.

Begin with `transport.py`. Pure are `errors`, `events`, `content` and `windows`; `graph`
talks; `calls` takes what Meta's webhooks bring, `handing` takes their messages on.

Source of all wire facts: Meta, "WhatsApp Business Platform, Cloud API", reference and
webhooks; what was seen otherwise is said at its place.
"""
