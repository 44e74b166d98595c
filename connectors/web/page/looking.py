"""How the operator's views look at what there is, and change it.

Everything is read in a thread, by connections of its own that only read, so that no
turn waits for a page. What comes back is plain values, in which each text is cleaned of
the settings' secrets and bounded: templates get nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import msgspec
import trio

from actors.by_hand import Deed, as_commit
from connectors.office.safe_text import make_safe
from connectors.web.page.views import Refusal
from runtime.errors import KernelError, StoreError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from connectors.config import AppConfig
    from connectors.web.page.views import Asked, Inside, Shown
    from runtime.sqlite_mend import Mended

T = TypeVar("T")

LOG = EventLog("page")

LONGEST_TEXT = 4_000
"""Characters of one text on a page."""

MOST_COMPLAINTS = 5
"""Rows that cannot be read of which a page tells."""


@dataclass(frozen=True)
class Look:
    """One look at what there is."""

    inside: Inside
    path: Path
    """The database."""

    config: AppConfig
    now: float
    """Unix seconds."""

    query: Mapping[str, str]
    complaints: list[str] = field(default_factory=list[str])

    def complain(self, text: str) -> None:
        """Learn of a row that cannot be read."""
        if len(self.complaints) < MOST_COMPLAINTS:
            self.complaints.append(text)


def look_of(asked: Asked) -> Look:
    """Say at what somebody looks."""
    config = asked.inside.config()
    now = asked.inside.services.clock.wall()
    return Look(asked.inside, Path(config.store.path), config, now, asked.query)


async def looked(asked: Asked, read: Callable[[Look], Shown]) -> Shown:
    """Read something in a thread, and make it fit for a page.

    Raises:
        Refusal: it is not there, or the database cannot be read.
    """
    look = look_of(asked)
    redact = asked.inside.services.redact

    def run() -> Shown:
        values = {**read(look), "complaints": look.complaints, "query": look.query}
        return {name: clean(value, redact) for name, value in values.items()}

    try:
        return await trio.to_thread.run_sync(
            run, abandon_on_cancel=True, limiter=asked.inside.threads
        )
    except (KernelError, OSError) as error:
        raise Refusal(redact(str(error))) from error


async def changed(
    asked: Asked, change: Callable[[Path], Mended], verb: str, status: str
) -> str:
    """Change something by hand, in a thread, and put on record who did.

    Args:
        asked: `form["id"]` names what is changed.
        change: does it; the same as on the command line.
        verb: what is done, for the audit.
        status: what becomes of it, for the audit.

    Raises:
        Refusal: it is not done.
    """
    services = asked.inside.services
    target = asked.form.get("id", "")
    path = Path(asked.inside.config().store.path)
    try:
        mended = await trio.to_thread.run_sync(change, path)
    except (KernelError, OSError) as error:
        raise Refusal(services.redact(str(error))) from error
    if not mended.has_changed:
        raise Refusal(services.redact(mended.text))
    deed = Deed(verb, status, target, asked.person)
    LOG.info("changed by hand", what=verb, target=target, by=asked.person)
    try:
        await services.store.commit(as_commit(deed, services))
    except StoreError as error:
        LOG.warning("changed by hand, not on record", target=target, why=str(error))
    return services.redact(mended.text)


def clean(value: object, redact: Callable[[str], str]) -> object:
    """Make plain values, each text without secrets and no longer than fits."""
    match value:
        case str():
            return shortened(make_safe(redact(value)))
        case None | bool() | int() | float():
            return value
        case msgspec.Struct():
            return clean(msgspec.structs.asdict(value), redact)
        case Mapping():
            table = cast("Mapping[object, object]", value)
            return {clean(k, redact): clean(each, redact) for k, each in table.items()}
        case list() | tuple():
            rows = cast("Sequence[object]", value)
            return [clean(each, redact) for each in rows]
        case msgspec.UnsetType():
            return None
        case _:
            raise TypeError(f"a page cannot show a {type(value).__name__}")


def shortened(text: str) -> str:
    """Cut a text to what fits, and say how long it is."""
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[:LONGEST_TEXT]}… ({len(text):,} characters)"


def number_of(text: str) -> int:
    """Read a place in a list; what is none is its beginning."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0


def chosen(text: str, known: Mapping[str, T], usual: str) -> tuple[str, T]:
    """Choose one of what there is by its name; the usual one for any other."""
    name = text if text in known else usual
    return name, known[name]
