"""Which messages were handed in of late, so that of several accounts one does it."""

from __future__ import annotations

from collections import OrderedDict

import trio

# Chosen: the accounts lag behind each other by seconds; ten thousand messages
# are more than a platform sends in that time. What is forgotten is known to the
# database.
MOST_SEEN = 10_000


class Seen:
    """The events of late, and who is about to hand one in.

    Args:
        most: events that are remembered.
    """

    def __init__(self, most: int = MOST_SEEN) -> None:
        self._most = most
        self._done: OrderedDict[str, None] = OrderedDict()
        self._taken: dict[str, trio.Event] = {}

    def __contains__(self, event_id: str) -> bool:
        """Tell whether an event was handed in."""
        return event_id in self._done

    async def claim(self, event_id: str) -> bool:
        """Ask to hand an event in; waits while another account is about to.

        Returns:
            True: the caller must now call `done` or `give_back`. False: it was done.
        """
        while (taken := self._taken.get(event_id)) is not None:
            await taken.wait()
        if event_id in self._done:
            return False
        self._taken[event_id] = trio.Event()
        return True

    def done(self, event_id: str) -> None:
        """Note that an event needs nobody any more."""
        self._done[event_id] = None
        self._done.move_to_end(event_id)
        while len(self._done) > self._most:
            self._done.popitem(last=False)
        self.give_back(event_id)

    def give_back(self, event_id: str) -> None:
        """Leave an event to whoever else has it."""
        taken = self._taken.pop(event_id, None)
        if taken is not None:
            taken.set()
