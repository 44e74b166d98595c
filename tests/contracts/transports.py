"""What the suites of `actors.transport.Transport` have in common.

Each check is played on every transport: those of platforms with a fake at the other
end, the others with what they really print to, read from or listen on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest
import trio

from actors.errors import DeliveryRefusedError
from actors.messages.deliveries import Delivery, Draft
from actors.messages.inbound import Inbound
from tests.fakes.chat.stages import Stage

PLATFORMS = (
    *("discord", "matrix", "page", "postcard", "qq", "slack"),
    *("telegram", "web", "websocket", "whatsapp"),
)
TRANSPORTS = ("fake", "terminal", "room", "http", *PLATFORMS)
ALL = pytest.mark.parametrize("name", TRANSPORTS)


def answer(inbound: Inbound, text: str, agent: str = "anna", left: int = 0) -> Delivery:
    return Delivery(
        id=f"{inbound.id}/{agent}/{hashlib.sha256(text.encode()).hexdigest()[:16]}",
        correlation_id=inbound.correlation_id,
        address=inbound.address,
        agent=agent,
        text=text,
        answers_left=left,
    )


def draft(inbound: Inbound, text: str, agent: str = "anna") -> Draft:
    return Draft(
        correlation_id=inbound.correlation_id,
        turn_id=f"{inbound.id}/{agent}",
        address=inbound.address,
        agent=agent,
        text=text,
    )


async def wait_until(stage: Stage, is_so: Callable[[], bool]) -> None:
    """Wait for something that the person sees, or that the platform learns."""
    with trio.fail_after(5):
        while not is_so():
            await stage.wait_change()


async def said_or_refused(stage: Stage, delivery: Delivery) -> str:
    """Say something that may be refused; whatever else it raises, or waiting, fails.

    Returns:
        The receipt; empty: refused.
    """
    with trio.fail_after(5):
        try:
            return await stage.transport.deliver(delivery)
        except DeliveryRefusedError:
            return ""


async def ask(stage: Stage, text: str) -> Inbound:
    """Have the person write, and give the message that was handed in."""
    await stage.write(text)
    return await stage.ingress.next()
