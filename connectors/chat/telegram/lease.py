"""Who of several programs on this machine asks for a bot's messages: one.

Telegram gives each message to whoever asks, and ends all other questions (409): two
programs with one token would each get a part of what people write. A lock on a file
holds for as long as its program lives, however that ends. Programs on other machines
are found out by Telegram's 409 only.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from connectors.chat.telegram.errors import ConflictError

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


@contextmanager
def leased(folder: Path | None, bot: int) -> Generator[None]:
    """Hold a bot for this program until the block ends.

    Args:
        folder: where the locks are; None, or one in which none can be made: nobody is
            kept out.
        bot: its id.

    Raises:
        ConflictError: another program holds it.
    """
    place = None if folder is None else lock_file(folder, bot)
    if place is None:
        yield
        return
    try:
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConflictError(
                f"another program on this machine hears bot {bot} already; end it,"
                " or give this one a bot of its own"
            ) from error
        yield
    finally:
        os.close(place)


def lock_file(folder: Path, bot: int) -> int | None:
    """Open the file of a bot; None if that is not possible."""
    path = folder / f"callboard-telegram-{os.getuid()}-{bot}.lock"
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags, 0o600)
    except OSError:
        return None
