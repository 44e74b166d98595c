"""How calls cross from one event loop to another: queued, one wake per burst.

`bridge.py` has one for each direction. Knows neither trio nor asyncio: it is
given the function that wakes the target loop.

    BridgeError
    ├── BridgeClosedError   the loop is not running (not started, closed, died)
    └── BridgeBusyError     too much is waiting to cross; try again later
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from runtime.errors import KernelError

Step = Callable[[], object]

logger = logging.getLogger(__name__)


class BridgeError(KernelError):
    """Something could not cross between the kernel and the edge."""


class BridgeClosedError(BridgeError):
    """The asyncio loop is not running; its supervisor starts it again."""


class BridgeBusyError(BridgeError):
    """Too much is waiting to cross; nothing was queued, try again later."""


class Crossing:
    """Calls on their way into one loop; the loop is woken once per burst.

    Safe from any thread: it relies on `deque.append` and `popleft` being atomic.

    Args:
        wake: makes the target loop call a function soon; safe from any thread.
        limit: most posts that may wait; beyond, `BridgeBusyError`.
        target: name of the loop for error texts.
    """

    def __init__(self, wake: Callable[[Step], object], limit: int, target: str) -> None:
        self._wake = wake
        self._limit = limit
        self._target = target
        self._waiting: deque[Step] = deque()
        self._is_woken = False

    def post(self, step: Step, *, must: bool = False) -> None:
        """Have `step` called on the target loop.

        Args:
            step: the call; an exception from it is logged and goes no further.
            must: queue it even beyond the limit, for the ends of calls, which
                are bounded by the number of calls.

        Raises:
            BridgeBusyError: `limit` posts are waiting already.
            BridgeClosedError: the target loop has ended.
        """
        if len(self._waiting) >= self._limit and not must:
            raise BridgeBusyError(
                f"{self._limit} posts wait for the {self._target}; try again later"
            )
        self._waiting.append(step)
        if self._is_woken:
            return
        self._is_woken = True
        try:
            self._wake(self._run)
        except RuntimeError as error:
            # Source: both loops say RuntimeError when they have ended, and only
            # then (`call_soon_threadsafe`; `trio.RunFinishedError` is one).
            self._is_woken = False
            self._waiting.clear()
            raise BridgeClosedError(f"the {self._target} has ended") from error

    def _run(self) -> None:
        # Why first: a post that comes while this runs must wake the loop again.
        self._is_woken = False
        for _ in range(len(self._waiting)):
            step = self._waiting.popleft()
            try:
                step()
            except Exception:
                # Why broad: the step is somebody else's code, and an exception
                # here would end the whole kernel (or the whole edge) with it.
                logger.exception("a call posted to the %s failed", self._target)
