"""What transports and `actors/connector.py` tell each other about what comes in."""

from __future__ import annotations

import msgspec

from actors.deliveries import Delivery
from actors.messages import Inbound


class CheckSender(msgspec.Struct, frozen=True):
    """To a connector, asked: may whoever wrote this write there? Nothing is kept."""

    inbound: Inbound


class RefusedAttempt(msgspec.Struct, frozen=True):
    """Somebody who was not let in (F319)."""

    reason: str
    """One bounded word: `bad_key`, `unknown_sender`, …"""

    sender_id: str = ""
    """Who it was, as far as the platform says: an account, an address."""

    chat: str = ""


class Earlier(msgspec.Struct, frozen=True):
    """What became of a message that was accepted before."""

    inbound: Inbound
    outcome: str
    """Empty while it is not settled; then as in `Transport.settle`: `replied:ok`."""

    deliveries: tuple[Delivery, ...]
    """All that was said to it so far, by whomever, in order; drafts excluded."""
