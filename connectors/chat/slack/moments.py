"""Messages' ids, which are the time they were said at; pure.

Slack names a message by its channel and its `ts`, as `1741234567.000100`. It is never a
float: it would not come back as it was.
"""

from __future__ import annotations

import re

TS = re.compile(r"\d{1,12}\.\d{6}")
CHANNEL = re.compile(r"[CDG][A-Z0-9]{1,30}")

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's, in which our ids are written."""

START = "0000000000.000000"
"""Before all messages."""


def is_ts(value: str) -> bool:
    """Tell whether this names a moment."""
    return TS.fullmatch(value) is not None


def is_channel(value: str) -> bool:
    """Tell whether this can be the id of a channel, a direct chat or a group."""
    return CHANNEL.fullmatch(value) is not None


def order(ts: str) -> tuple[int, int]:
    """Give what sorts moments."""
    seconds, _, rest = ts.partition(".")
    return int(seconds), int(rest)


def at(seconds: float) -> str:
    """Give the name of a moment in Unix seconds."""
    return f"{max(0.0, seconds):.6f}"


def message_id(channel: str, ts: str) -> str:
    """Make the id under which a message is known here."""
    return f"{channel}/{ts}"


def taken_apart(message: str) -> tuple[str, str]:
    """Give the channel and the `ts` of a message's id; both empty if it is none.

    What a slash command says is no message there, and has an id of another shape.
    """
    channel, _, ts = message.partition("/")
    return (channel, ts) if is_channel(channel) and is_ts(ts) else ("", "")


def made_at(our_id: str) -> float:
    """Read when one of our ids was made, in Unix seconds; 0.0 if it does not say.

    Source: ULID; the first ten characters count milliseconds.
    """
    head = our_id[:10].upper()
    if len(head) < 10 or any(each not in ALPHABET for each in head):
        return 0.0
    milliseconds = 0
    for each in head:
        milliseconds = milliseconds * 32 + ALPHABET.index(each)
    return milliseconds / 1000


class Mark:
    """Up to which moment all messages of an account are in.

    Messages of several channels come in beside each other; the mark stands before the
    oldest that is not in yet, and only goes forward.

    Args:
        ts: where it stands.
    """

    def __init__(self, ts: str = START) -> None:
        self.ts = ts
        self._open: set[str] = set()
        self._newest = ts

    def begin(self, ts: str) -> None:
        """Note that a message is being brought in.

        Until `end` it stays so, even if it is left: it comes again, and the mark goes
        no further before it has.
        """
        if order(ts) > order(self.ts):
            self._open.add(ts)

    def end(self, ts: str) -> None:
        """Note that a message is in, or that nobody needs it."""
        self._open.discard(ts)
        self._newest = max(self._newest, ts, key=order)
        self._move()

    def _move(self) -> None:
        if not self._open:
            self.ts = max(self.ts, self._newest, key=order)
            return
        oldest = min(self._open, key=order)
        done = [self._newest, before(oldest)]
        reached = min(done, key=order)
        self.ts = max(self.ts, reached, key=order)


def before(ts: str) -> str:
    """Give the moment right before another."""
    seconds, rest = order(ts)
    if rest:
        return f"{seconds:010}.{rest - 1:06}"
    return f"{max(0, seconds - 1):010}.999999"


def after(ts: str) -> str:
    """Give the moment right after another."""
    seconds, rest = order(ts)
    if rest < 999_999:
        return f"{seconds:010}.{rest + 1:06}"
    return f"{seconds + 1:010}.000000"
