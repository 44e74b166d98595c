"""Notices that files were changed, by looking at them every two seconds.

Why looking and not the kernel's notices: a few looks cost nothing, hold no thread or
descriptor, and see what notices miss: a file on a network mount, one that was put in
the place of another, one behind a link that points elsewhere now, as Kubernetes swaps
settings and secrets.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LOOK_EVERY = 2.0
"""Seconds."""

# Chosen: seconds without a further change until files count as written; editors and
# deployments write several in a row.
SETTLED_AFTER = 0.25

# Chosen: seconds after which a file that is written to again and again is read anyway.
LONGEST_WRITING = 10.0

Look = dict["Path", tuple[int, int, int] | None]
"""By file: when it was changed, its size and which one it is; None if there is none."""


def look(files: Iterable[Path]) -> Look:
    """Look at files once."""
    seen: Look = {}
    for file in files:
        try:
            status = file.stat()
        except OSError:
            seen[file] = None
        else:
            seen[file] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return seen


async def wait_changed(
    known: Look, *, within: float = math.inf, every: float = LOOK_EVERY
) -> Look:
    """Wait until files look different, and have done so for a moment.

    Args:
        known: how they looked.
        within: seconds after which to return anyway.
        every: seconds between two looks.

    Returns:
        How they look now.
    """
    until = trio.current_time() + within
    seen = known
    while seen == known and trio.current_time() < until:
        await trio.sleep(min(every, max(until - trio.current_time(), 0.0)))
        seen = await look_aside(known)
    if seen == known:
        return seen
    until = trio.current_time() + LONGEST_WRITING
    while trio.current_time() < until:
        await trio.sleep(SETTLED_AFTER)
        before, seen = seen, await look_aside(known)
        if seen == before:
            break
    return seen


async def look_aside(files: Iterable[Path]) -> Look:
    """Look in a thread: a network mount may keep one waiting."""
    return await trio.to_thread.run_sync(look, tuple(files), abandon_on_cancel=True)
