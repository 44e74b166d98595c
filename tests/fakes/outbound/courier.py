"""Brings one delivery to a transport by the rules that couriers go by."""

from __future__ import annotations

import trio

from actors.errors import DeliveryBusyError, DeliveryRefusedError, DeliveryUnknownError
from actors.messages.deliveries import Delivery
from actors.outbound import retry as sending
from actors.transport import Transport


async def bring(transport: Transport, delivery: Delivery) -> sending.StoreEnd:
    """Bring a delivery to its end, whatever waits between; nothing is stored."""
    rule = sending.DeliveryProgress(transport.abilities, "resend")
    effect = rule.on(sending.DeliveryBegins(), trio.current_time())
    while not isinstance(effect, sending.StoreEnd):
        event = await carry_out(effect, transport, delivery)
        effect = rule.on(event, trio.current_time())
    return effect


async def carry_out(
    effect: sending.Effect, transport: Transport, delivery: Delivery
) -> sending.Event:
    """Do what the rule wants."""
    if isinstance(effect, sending.StoreAttempt):
        return sending.AttemptStored()
    if isinstance(effect, sending.Pause):
        await trio.sleep(effect.seconds)
        return sending.PauseOver()
    return await asked(effect, transport, delivery)


async def asked(
    effect: sending.Effect, transport: Transport, delivery: Delivery
) -> sending.Event:
    """Ask the platform."""
    try:
        if isinstance(effect, sending.LookUpDelivery):
            return sending.DeliveryLookedUp(await transport.look_up(delivery))
        return sending.PlatformTook(await transport.deliver(delivery))
    except DeliveryBusyError as error:
        return sending.PlatformBusy(str(error), error.retry_after)
    except DeliveryUnknownError as error:
        return sending.AnswerLost(str(error))
    except DeliveryRefusedError as error:
        return sending.PlatformRefused(str(error))
