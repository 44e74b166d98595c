"""SQLite's functions for vectors: those of sqlite-vec, or else our own."""

from __future__ import annotations

import contextlib
import importlib.util
from pathlib import Path

import apsw

from runtime.store.vectors import cosine


def extension() -> Path | None:
    """Find sqlite-vec's library; None: it is not here."""
    # Why not `sqlite_vec.load`: the package imports Python's own `sqlite3`, a second
    # SQLite in the process.
    spec = importlib.util.find_spec("sqlite_vec")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).with_name("vec0")


def teach(db: apsw.Connection, library: Path | None) -> bool:
    """Define `vec_int8` and `vec_distance_cosine` on a connection.

    Args:
        db: the connection.
        library: sqlite-vec's; what cannot be loaded is done by functions here, which
            give the same and take fifty times as long.

    Returns:
        Whether the library was loaded.
    """
    if library is not None:
        db.enable_load_extension(enable=True)
        try:
            with contextlib.suppress(apsw.ExtensionLoadingError):
                db.load_extension(str(library))
                return True
        finally:
            db.enable_load_extension(enable=False)
    db.create_scalar_function("vec_int8", same, 1, deterministic=True)
    db.create_scalar_function("vec_distance_cosine", distance, 2, deterministic=True)
    return False


def same(*vector: object) -> bytes:
    """Give a vector unchanged: vectors are stored as bytes."""
    return as_vector(vector[0])


def distance(*pair: object) -> float:
    """Say how far apart two directions are, as sqlite-vec does."""
    return 1.0 - cosine(as_vector(pair[0]), as_vector(pair[1]))


def as_vector(value: object) -> bytes:
    """Read a vector; anything else is one without a direction."""
    return value if isinstance(value, bytes) else b""
