"""`callboard login`: a link that logs a browser in to the page, once."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import click

from connectors.commands.database import (
    database_options,
    find_database,
    settings_beside,
)
from connectors.commands.printing import complain, say
from connectors.page_config import PageConfig
from connectors.web.page.login_rows import (
    LINK,
    MOST_LINKS,
    SESSION,
    TOKEN_BYTES,
    Link,
    entry,
    new_token,
    row_id,
    surplus,
)
from runtime import sqlite_mend
from runtime.clock import SystemClock
from runtime.rows import Commit
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from pathlib import Path

    from connectors.config import AppConfig
    from runtime.entries import StoredEntry

CLOCK = SystemClock()
FAILED = 1


@click.command()
@database_options
@click.option("--as", "person", metavar="NAME", help="Who logs in, of `people`.")
@click.option(
    "--page", "name", metavar="NAME", help="Which page, if there are several."
)
@click.option(
    "--revoke-all", is_flag=True, help="Log all browsers out; links hold no more."
)
def command(
    config: Path | None,
    db: Path | None,
    person: str | None,
    name: str | None,
    *,
    revoke_all: bool,
) -> int:
    """Print a link that logs one browser in to the web page.

    May be used while `callboard serve` is running. Whoever opens the link sees all
    conversations and can stop everything: hand it to nobody else.
    """
    settings = settings_beside(config, db)
    if settings is None:
        raise click.UsageError("name the settings too: --config PATH")
    path = find_database(config, db)
    page, page_config = find_page(settings.value, name)
    if not path.exists():
        complain(f"there is no database {path} yet: start `callboard serve` first")
        return FAILED
    if revoke_all:
        return revoke(path, page)
    who = person or page_config.people[0]
    if who not in page_config.people:
        known = ", ".join(page_config.people)
        complain(f"{who!r} may not log in; connectors.{page}.people names: {known}")
        return FAILED
    token = new_token(secrets.token_bytes(TOKEN_BYTES))
    now = CLOCK.wall()
    link = Link(who, now + page_config.login_for, now)
    old = surplus(rows_of(path, page, LINK), Link, now, MOST_LINKS - 1)
    made = entry(LINK, row_id(page, token), link, 0)
    sqlite_mend.write(path, Commit(at=now, entries=(*old, made)))
    say(f"{address_of(page_config)}/login/{token}")
    minutes = f"{page_config.login_for / 60:.0f} minutes"
    click.echo(f"Open it within {minutes}, as {who}; it holds once.", err=True)
    return 0


def find_page(app: AppConfig, name: str | None) -> tuple[str, PageConfig]:
    """Find the page that is meant.

    Raises:
        click.UsageError: there is none, or it is not clear which.
    """
    pages = {
        each: connector
        for each, connector in app.connectors.items()
        if isinstance(connector, PageConfig)
    }
    if not pages:
        text = 'the settings have no page: add [connectors.page] kind = "page"'
        raise click.UsageError(text)
    if name is None and len(pages) == 1:
        return next(iter(pages.items()))
    if name is None or name not in pages:
        raise click.UsageError(f"which page? --page {' or '.join(pages)}")
    return name, pages[name]


def address_of(page: PageConfig) -> str:
    """Give the address under which browsers reach it."""
    if page.origin:
        return page.origin.rstrip("/")
    host = f"[{page.host}]" if ":" in page.host else page.host
    # The port is chosen at the start, then; `callboard serve` has printed it.
    return f"http://{host}:{page.port or '<port>'}"


def rows_of(path: Path, page: str, kind: str) -> list[StoredEntry]:
    """Read all rows of one kind and page."""
    with survey(path) as rows:
        return [each for each in rows.entries(kind) if each.owner == page]


def revoke(path: Path, page: str) -> int:
    """Log all browsers out, and let no link hold."""
    gone = [each for kind in (LINK, SESSION) for each in rows_of(path, page, kind)]
    entries = tuple(entry(each.kind, each.id, None) for each in gone)
    if entries:
        sqlite_mend.write(path, Commit(at=CLOCK.wall(), entries=entries))
    count = sum(each.kind == SESSION for each in gone)
    say(f"{count} browser{'' if count == 1 else 's'} logged out; no link holds.")
    return 0
