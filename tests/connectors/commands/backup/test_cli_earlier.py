"""Proves that what earlier releases stored is taken over, and that one may go back.

The databases in tests/runtime/sqlite/earlier were made by those releases' own program:
`chat` with the shipped offline settings, and three messages.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from connectors.cli import run
from runtime.errors import StoreTooNewError
from runtime.sqlite.database import SqliteDatabase
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.migrations import MIGRATIONS
from runtime.sqlite.store import SqliteStore

EARLIER = Path(__file__).parents[3] / "runtime" / "sqlite" / "earlier"
VERSIONS = sorted(int(each.name[1:].partition(".")[0]) for each in EARLIER.iterdir())
NEWEST = len(MIGRATIONS)

Output = pytest.CaptureFixture[str]


@pytest.fixture(params=VERSIONS)
async def upgraded(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, int]:
    version: int = request.param
    path = tmp_path / "callboard.db"
    packed = (EARLIER / f"v{version}.db.gz").read_bytes()
    path.write_bytes(gzip.decompress(packed))
    store = await SqliteStore.open(SqliteFile(path))
    await store.aclose()
    return path, version


async def test_what_was_said_is_there_and_explained(
    upgraded: tuple[Path, int], capsys: Output
) -> None:
    path, _ = upgraded
    db = ("--db", str(path))
    assert run(["replay", "--json", *db]) == 0
    found = json.loads(capsys.readouterr().out)
    streams = [each["conversation"] for each in found]
    anna = next(each for each in streams if each.startswith("anna/"))
    assert run(["replay", anna, *db]) == 0
    told = capsys.readouterr().out
    assert "hello, I am Sam" in told
    assert "I am Anna, the front desk" in told
    with SqliteDatabase(path).inspect() as rows:
        assert rows.counts().inbox == {"replied": 3}
    # Records have had fields since that they had not.
    assert run(["records", "rebuild", *db]) == 0
    assert run(["records", "check", *db]) == 0


async def test_one_may_go_back_by_the_copy(upgraded: tuple[Path, int]) -> None:
    path, version = upgraded
    copy = path.with_name(f"{path.name}.backup-v{version}")
    assert copy.exists() == (version < NEWEST)
    if copy.exists():
        assert not SqliteDatabase(copy).is_current()
        SqliteDatabase(copy).refuse_damaged()
    # What that release, which knows fewer steps, would say of the upgraded one.
    file = SqliteFile(path, migrations=MIGRATIONS[: NEWEST - 1])
    with pytest.raises(StoreTooNewError, match="install that release again, or"):
        await SqliteStore.open(file)
