"""What is stored of a delivery around the moment in which its platform is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from actors.rules import sending as rules
from runtime.errors import DuplicateError, StoreUnavailableError
from runtime.logs import EventLog
from runtime.rows import Commit, NotSaid, SendAttempt

if TYPE_CHECKING:
    from actors.deliveries import Delivery
    from actors.services import Services

LOG = EventLog("courier")

# Chosen: seconds until something is stored again that the disk refused.
RETRY_COMMIT = 1.0

# Chosen: half a minute of a full disk; the connector looks again as often.
MOST_MARKS = 30
"""Tries to store that the platform is about to be asked, at a time."""

IN_PLACE = "being written into what stands in the chat"
"""What people read of a delivery that had to wait, and is an edit."""


async def mark(
    mark: rules.Mark, delivery: Delivery, services: Services
) -> rules.Marked | rules.Settled | None:
    """Store that the platform is about to be asked; None: the disk is full."""
    commit = _as_commit(mark, delivery.id, services.clock.wall())
    for _ in range(MOST_MARKS):
        try:
            await services.store.commit(commit)
        except StoreUnavailableError as error:
            LOG.warning("delivery waits for the disk", why=str(error))
            await trio.sleep(RETRY_COMMIT)
        except DuplicateError as error:
            return rules.Settled(str(error))
        else:
            return rules.Marked()
    return None


def _as_commit(mark: rules.Mark, delivery_id: str, now: float) -> Commit:
    if mark.is_edit:
        return Commit(at=now, not_said=(NotSaid(delivery_id, IN_PLACE),))
    return Commit(at=now, send_attempts=(SendAttempt(delivery_id, mark.attempt),))


def put_back(delivery: Delivery, why: str, services: Services) -> None:
    """Store that the platform does not have it, so that no restart doubts it."""
    commit = Commit(at=services.clock.wall(), not_said=(NotSaid(delivery.id, why),))
    # Should that fail, it stays in doubt, as if the platform had not answered.
    services.store.submit(commit, _note_put_back)


def _note_put_back(outcome: object) -> None:
    if isinstance(outcome, Exception):
        LOG.warning("not stored that a platform was busy", why=str(outcome))
