"""The store's errors, as those of deliveries."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from actors.errors import DeliveryBusyError, DeliveryRefusedError
from runtime.errors import CorruptError, StoreError

if TYPE_CHECKING:
    from collections.abc import Generator

    from connectors.web.page.talk import Talk


@contextmanager
def told_as_busy(talk: Talk) -> Generator[None]:
    """Say of what fails whether trying again can help.

    Raises:
        DeliveryBusyError: nobody listens now, or the disk is ill.
        DeliveryRefusedError: the row is damaged.
    """
    if talk.ingress is None:
        raise DeliveryBusyError("the page is not listening")
    try:
        yield
    except CorruptError as error:
        raise DeliveryRefusedError(str(error)) from error
    except StoreError as error:
        raise DeliveryBusyError(str(error)) from error
