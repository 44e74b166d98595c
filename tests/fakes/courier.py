"""Brings one delivery to a transport by the rules that couriers go by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from actors.errors import (
    DeliveryBusyError,
    DeliveryRefusedError,
    DeliveryUnknownError,
)
from actors.rules import sending

if TYPE_CHECKING:
    from actors.deliveries import Delivery
    from actors.transport import Transport


async def bring(transport: Transport, delivery: Delivery) -> sending.End:
    """Bring a delivery to its end, whatever waits between; nothing is stored."""
    rule = sending.Sending(transport.abilities, "resend")
    effect = rule.on(sending.Begins(), trio.current_time())
    while not isinstance(effect, sending.End):
        event = await carry_out(effect, transport, delivery)
        effect = rule.on(event, trio.current_time())
    return effect


async def carry_out(
    effect: sending.Effect, transport: Transport, delivery: Delivery
) -> sending.Event:
    """Do what the rule wants."""
    if isinstance(effect, sending.Mark):
        return sending.Marked()
    if isinstance(effect, sending.Pause):
        await trio.sleep(effect.seconds)
        return sending.Waited()
    return await asked(effect, transport, delivery)


async def asked(
    effect: sending.Effect, transport: Transport, delivery: Delivery
) -> sending.Event:
    """Ask the platform."""
    try:
        if isinstance(effect, sending.LookUp):
            return sending.LookedUp(await transport.look_up(delivery))
        return sending.Said(await transport.deliver(delivery))
    except DeliveryBusyError as error:
        return sending.Busy(str(error), error.retry_after)
    except DeliveryUnknownError as error:
        return sending.Lost(str(error))
    except DeliveryRefusedError as error:
        return sending.Refused(str(error))
