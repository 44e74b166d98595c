"""How SQLite looks up words and compares vectors: by FTS5, and by sqlite-vec.

It compares vectors of PostgreSQL, too, which are read there: in C, and thirty times as
fast as in Python.

Where sqlite-vec is not installed, its functions are our own.
"""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Collection, Iterable
from pathlib import Path

import apsw

from runtime.sql.facts import MOST_HITS, Lookup, marks
from runtime.sql.read import Answer, Db
from runtime.store.facts import FactSearch
from runtime.store.vectors import cosine

HITS = f"""SELECT rowid FROM fact_words WHERE fact_words MATCH ?
    ORDER BY rowid DESC LIMIT {MOST_HITS}"""
DISTANCE = "vec_distance_cosine(vec_int8(vector), vec_int8(?))"
COMPARE = "SELECT ?, vec_distance_cosine(vec_int8(?), vec_int8(?))"


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


def match(beginnings: Iterable[str]) -> str:
    """Write down for FTS5 what matches words that begin with one of these."""
    return " OR ".join([f'"{each}"*' for each in beginnings])


def alike(
    db: Db, asked: FactSearch, there: list[int], besides: Collection[int]
) -> dict[int, float]:
    """Say how alike the question and vectors of its scopes are; see `Lookup`."""
    given = (asked.space, len(asked.vector))
    sql = f"""SELECT number, {DISTANCE} AS far FROM fact_vector
        WHERE scope IN ({marks(there)}) AND space = ? AND length(vector) = ?"""
    near = similarities(
        db.execute(
            f"{sql} ORDER BY far LIMIT ?", (asked.vector, *there, *given, asked.limit)
        )
    )
    numbers = set(besides) - near.keys()
    if numbers:
        sql += f" AND number IN ({marks(numbers)})"
        rows = db.execute(sql, (asked.vector, *there, *given, *numbers))
        near |= similarities(rows)
    return near


def similarities(rows: Answer) -> dict[int, float]:
    """Turn distances into similarities; a zero vector is similar to nothing."""
    return {number: 0.0 if far is None else 1.0 - far for number, far in rows}


def compare(asked: bytes, vectors: Iterable[tuple[int, bytes]]) -> dict[int, float]:
    """Say how alike a vector and others of its length are, by their numbers.

    For rows of another database: this one is in memory, and holds nothing.
    """
    with contextlib.closing(apsw.Connection(":memory:")) as db:
        teach(db, extension())
        given = ((number, vector, asked) for number, vector in vectors)
        return similarities(db.executemany(COMPARE, given))


LOOKUP = Lookup(HITS, match, alike)
