"""A program that commits turns and prints each one acknowledged, until it is killed.

Run as `python -m tests.support.store.writer DATABASE`; tests of crashes start it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import trio

from runtime.errors import StoreError
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.rows import MAX_ROWS
from tests.support.store.rows import turn

STREAMS = ("a", "b", "c", "d", "e", "f", "g", "h")


async def write(store: SqliteStore, stream: str) -> None:
    """Commit one turn after the other, going on where the stream ends."""
    number = len(await store.read(stream, 0, MAX_ROWS))
    while True:
        await store.commit(turn(number, stream))
        number += 1
        # Not `print`: what was acknowledged must be out before anything else is.
        os.write(1, f"{stream} {number}\n".encode())


async def main() -> None:
    """Write on all streams at once."""
    store = await SqliteStore.open(SqliteFile(Path(sys.argv[1])))
    async with trio.open_nursery() as nursery:
        for stream in STREAMS:
            nursery.start_soon(write, store, stream)


if __name__ == "__main__":
    try:
        trio.run(main)
    except StoreError as error:
        sys.exit(str(error))
