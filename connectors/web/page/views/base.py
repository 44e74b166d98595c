"""Views, the parts of the page beside the chat, and what they are given.

How a view is added:

1. A module of this package with a `View` in it, named `VIEW`:

       async def load(asked: ViewRequest) -> ViewValues:
           return {"rows": [...]}          # what the template reads

       async def retry(asked: ViewRequest) -> str:
           ...                             # asked.form["id"] names the row
           return "It is tried again."     # shown above the view, once

       VIEW = View("queue", "Queue", load, every=2.0, actions={"retry": retry})

2. `templates/<name>.html`, which begins with `{% extends "base.html" %}` and fills two
   blocks: `main`, the whole of it, and in there `live`, what changes:

       {% extends "base.html" %}
       {% block main %}
       <h1>{{ view.title }}</h1>
       <div data-live="{{ here }}">{% block live %}…{% endblock %}</div>
       {% endblock %}

   While a tab has the view open, the page calls `load` every `every` seconds, and sends
   the block `live` if it has changed. The script replaces the block without moving the
   focus or closing what is open; elements that can be opened or focused need an `id`.
   Without scripts, the page shows the state at the time of the request.

3. Its module's name in `connectors/web/page/views/__init__.py`, which has the order of
the navigation.

`load` and actions run in the kernel, in a trio task of their own, for no longer than
`LONGEST` seconds; they must not block (read the database in a thread). All that a
template is given is escaped, whatever it says; it has no scripts or styles of its own
(the policy forbids them): classes are in `static/page.css`.

An action is a form that is posted to `/<view>/<action>`, with `{{ csrf }}` in it;
`data-confirm="…"` on the form asks before:

    <form method="post" action="/queue/retry">{{ csrf }}
      <input type="hidden" name="id" value="{{ row.id }}"><button>Retry</button></form>

A function that cannot do its work raises `Refusal`: its text is shown above the view.
Templates translate by `_("{count} more", count=…)`, actions by `asked.say(…)`;
templates have the filters of
`connectors/web/page/words.py`: `when` (Unix seconds), `lasting` (seconds as
"2 h 5 min"), `brief`, `number`, `money`, `state` and `tone` (of a state), `iso`.

Views read in threads (`read_view`), by database connections of their own, so that no
turn waits for a page. Templates get plain values only, in which texts are shortened and
free of secrets.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar, cast

import msgspec
import trio

from actors import names as actor_names
from actors.journal.records import Deed, as_commit
from actors.messages.keys import parse_key
from actors.people.pairing_rows import rows_of
from actors.people.pairing_rules import PairingRequest, is_open
from actors.people.rows import PERSON, decoded
from connectors.admin.display import make_safe
from connectors.admin.nodes import (
    COMMAND_WITHIN,
    PAGE_WITHIN,
    ActByHand,
    NodeCircle,
    NodeQuestion,
    NodeReply,
    NodeWay,
)
from connectors.admin.settings import (
    Applied,
    Origins,
    Way,
    read_applied,
)
from connectors.admin.usage import BudgetStatus, Trends, UsageBook, budget_statuses
from connectors.web.page.words import Words
from runtime.errors import KernelError, StoreError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from actors.services import Services
    from connectors.app.reload.by_hand import SettingsByHand
    from connectors.config.app import AppConfig
    from runtime.actor.statistics import ActorStatistics
    from runtime.store.database import Database, Inspection, RepairResult
    from runtime.store.rows import StoredEntry
    from runtime.system import ActorSystem
    from runtime.telemetry.metrics import Metrics


LONGEST = 20.0
"""Seconds that a view's function may take; then the page shows an error."""

# Chosen: more readers of one database gain little.
MOST_LOOKS = 4
"""Views that read at once; others wait, within their time."""


async def ready() -> tuple[str, ...]:
    """Give no reason: the company is ready."""
    await trio.lowlevel.checkpoint()
    return ()


T = TypeVar("T")

SHARE = 0.05
"""Part of the time that one kind of reading may take."""


MOST_PACED = 200
"""Readings that are kept, the last ones."""


class PacedReadings:
    """Reads what takes long no more often than `SHARE` of the time allows.

    In a small database that is each time. Any thread may ask; the same is read once.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[str, tuple[float, object]] = {}

    def get(self, name: str, read: Callable[[], T], clock: Callable[[], float]) -> T:
        """Give what was read last, or read it anew.

        Args:
            clock: gives monotonic seconds.
        """
        with self._lock:
            began = clock()
            next_at, known = self._known.get(name, (began, None))
            if began < next_at:
                return cast("T", known)
            found = read()
            took = clock() - began
            self._known.pop(name, None)
            while len(self._known) >= MOST_PACED:
                del self._known[next(iter(self._known))]
            self._known[name] = (began + took + took / SHARE, found)
            return found


@dataclass(frozen=True)
class ViewSources:
    """What views may read; on the kernel's side only."""

    system: ActorSystem
    services: Services
    """Store, clock, ids, limits: the services of actors."""

    metrics: Metrics
    database: Database
    """Where all rows are; read in threads."""

    config: Callable[[], AppConfig]
    """The settings in force; masked by `connectors.admin.settings.effective`."""

    readiness: Callable[[], Awaitable[tuple[str, ...]]] = ready
    """Gives the reasons why messages cannot be answered now; empty: they can."""

    origins: Callable[[], Origins] = dict[Way, object]
    """Says where each setting was written."""

    editor: Callable[[], SettingsByHand] | None = None
    """Gives what changes settings by hand; None: they cannot be changed."""

    trends: Trends = field(default_factory=Trends)
    """What the last day looked like; one for each page."""

    usage: UsageBook = field(default_factory=UsageBook)
    """What models cost, as far as it was added up; one for each page."""

    paced: PacedReadings = field(default_factory=PacedReadings)
    """What takes long in a large database."""

    threads: trio.CapacityLimiter = field(
        default_factory=lambda: trio.CapacityLimiter(MOST_LOOKS)
    )
    """In which views read. Of their own: a look that took too long goes on in its
    thread, and tools and files need threads, too."""

    nodes: NodeCircle | None = None
    """Asks the other nodes of the company; None: it is one process."""

    async def ask_others(
        self, question: NodeQuestion, only: str = ""
    ) -> list[NodeReply]:
        """Ask all other nodes at once what the page shows of them.

        Args:
            only: the node that is to be asked; all are, if there is none of this name.
        """
        if self.nodes is None or only == self.nodes.name:
            return []
        ways = self.nodes.others()
        ways = [each for each in ways if each.listed.name == only] or ways
        return await self.nodes.ask(question, ways, PAGE_WITHIN)


@dataclass(frozen=True)
class ViewRequest:
    """One request for a view or an action, by a person who is logged in."""

    person: str
    """The person's name in the settings (`people`)."""

    inside: ViewSources
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    """The query of the URL; of equal names, the last."""

    form: Mapping[str, str] = field(default_factory=dict[str, str])
    """The posted form of an action; likewise."""

    connector: str = ""
    """Of the page that it comes from: with the person, the account that asks."""

    words: Words = field(default_factory=Words)
    """The person's language."""

    def say(self, text: str, **values: object) -> str:
        """Translate what an action says, and fill its places in."""
        return self.words.say(text, **values)


NOBODY_THERE = "nobody is there who could do it; try again in a moment"
NOT_KNOWN = "not known whether it was done: {why}"

ViewValues = Mapping[str, object]
"""The values of a template, by name."""

Load = Callable[[ViewRequest], Awaitable[ViewValues]]
Act = Callable[[ViewRequest], Awaitable[str]]


class Refusal(Exception):  # noqa: N818  nothing is wrong: it is an answer
    """A view or an action that cannot be done; its text says why and what to do."""


@dataclass(frozen=True)
class View:
    """One part of the page, at `/<name>`."""

    name: str
    title: str
    """Shown in the navigation and as the title of the window."""

    load: Load
    every: float = 0.0
    """Seconds between two readings while a tab has it open; 0: read once."""

    actions: Mapping[str, Act] = field(default_factory=dict[str, Act])
    """By the last part of the path they are posted to."""

    @property
    def template(self) -> str:
        """The file in `templates/`."""
        return f"{self.name}.html"


LOG = EventLog("page")

ENGLISH = Words()

LONGEST_TEXT = 4_000
"""Characters of one text on a page."""

MOST_COMPLAINTS = 5
"""Most unreadable rows that a page lists."""


@dataclass(frozen=True)
class Look:
    """One reading of a view: what it may read, and what was asked."""

    inside: ViewSources
    config: AppConfig
    now: float
    """Unix seconds."""

    query: Mapping[str, str]
    complaints: list[str] = field(default_factory=list[str])

    @property
    def database(self) -> Database:
        """The database."""
        return self.inside.database

    def paced(self, name: str, read: Callable[[], T]) -> T:
        """Read something, but no more often than its part of the time; see there."""
        clock = self.inside.services.clock.monotonic
        return self.inside.paced.get(name, read, clock)

    def complain(self, text: str) -> None:
        """Note an unreadable row, for the page."""
        if len(self.complaints) < MOST_COMPLAINTS:
            self.complaints.append(text)


def look_of(asked: ViewRequest) -> Look:
    """Begin a reading."""
    config = asked.inside.config()
    now = asked.inside.services.clock.wall()
    return Look(asked.inside, config, now, asked.query)


async def read_view(
    asked: ViewRequest, read: Callable[[Look], ViewValues]
) -> ViewValues:
    """Run a view's function in a thread, and clean its values for the template.

    Raises:
        Refusal: the object does not exist, or the database cannot be read.
    """
    look = look_of(asked)
    redact, say = asked.inside.services.redact, asked.words.say

    def run() -> ViewValues:
        values = {**read(look), "complaints": look.complaints, "query": look.query}
        return {name: clean(value, redact, say) for name, value in values.items()}

    try:
        return await trio.to_thread.run_sync(
            run, abandon_on_cancel=True, limiter=asked.inside.threads
        )
    except (KernelError, OSError) as error:
        raise Refusal(redact(str(error))) from error


def reading(
    read: Callable[[Look], ViewValues],
    read_one: Callable[[Look], ViewValues] | None = None,
    key: str = "id",
) -> Load:
    """Make what loads a view that only reads rows: a list, or one thing.

    Args:
        read_one: reads that thing; None: there is only a list.
        key: the parameter of the query that names it.
    """

    async def load(asked: ViewRequest) -> ViewValues:
        is_one = bool(asked.query.get(key))
        return await read_view(asked, read_one if read_one and is_one else read)

    return load


async def act_at(asked: ViewRequest, action: str, ways: Sequence[NodeWay]) -> str:
    """Have other nodes do what a person wants; gives what the first one says.

    Args:
        action: the view and its action, as `actors/kill`.
        ways: to those that are asked, all at once.

    Raises:
        Refusal: none of them has done it.
    """
    circle = asked.inside.nodes
    form, replies = dict(asked.form), list[NodeReply]()
    if circle is not None:
        order = ActByHand(action, form, asked.person, asked.connector)
        replies = await circle.ask(order, ways, COMMAND_WITHIN)
    for each in replies:
        if not each.why:
            return asked.words.say(each.read(str) or "")
    for each in replies:
        if not each.is_refused:
            why = f"node {each.node.name}: {each.why}"
            raise Refusal(asked.say(NOT_KNOWN, why=why))
    raise Refusal(replies[0].why if replies else asked.say(NOBODY_THERE))


async def change_by_hand(
    asked: ViewRequest,
    change: Callable[[Database], RepairResult],
    verb: str,
    status: str,
) -> str:
    """Change a row by hand, in a thread, and record who did it.

    Args:
        asked: `form["id"]` names the row.
        change: changes it, as on the command line.
        verb: the action, for the audit.
        status: the row's new status, for the audit.

    Raises:
        Refusal: nothing was changed.
    """
    services = asked.inside.services
    target = asked.form.get("id", "")
    try:
        result = await trio.to_thread.run_sync(change, asked.inside.database)
    except (KernelError, OSError) as error:
        raise Refusal(services.redact(str(error))) from error
    if not result.has_changed:
        raise Refusal(services.redact(result.text))
    await record_change(asked, verb, status, target)
    return services.redact(result.text)


async def record_change(
    asked: ViewRequest, verb: str, status: str, target: str
) -> None:
    """Say in the log and the audit what a person has changed.

    It is done by now, so that a store which fails only leaves a line in the log.

    Args:
        status: what became of the target.
    """
    services = asked.inside.services
    LOG.info("changed by hand", what=verb, target=target, by=asked.person)
    deed = Deed(verb, status, target, asked.person)
    try:
        await services.store.commit(as_commit(deed, services))
    except StoreError as error:
        LOG.warning("changed by hand, not on record", target=target, why=str(error))


def clean(
    value: object, redact: Callable[[str], str], say: Callable[..., str] = ENGLISH.say
) -> object:
    """Make plain values, with texts shortened and free of secrets.

    Args:
        redact: takes secrets out of a text.
        say: says in the reader's language how long a shortened text is.
    """
    match value:
        case str():
            return shortened(make_safe(redact(value)), say)
        case None | bool() | int() | float():
            return value
        case msgspec.Struct():
            return clean(msgspec.structs.asdict(value), redact, say)
        case Mapping():
            table = cast("Mapping[object, object]", value)
            return {
                clean(k, redact): clean(each, redact, say) for k, each in table.items()
            }
        case list() | tuple():
            rows = cast("Sequence[object]", value)
            return [clean(each, redact, say) for each in rows]
        case msgspec.UnsetType():
            return None
        case _:
            raise TypeError(f"a page cannot show a {type(value).__name__}")


def shortened(text: str, say: Callable[..., str] = ENGLISH.say) -> str:
    """Shorten a text to `LONGEST_TEXT`, and add its length."""
    if len(text) <= LONGEST_TEXT:
        return text
    return text[:LONGEST_TEXT] + say("… ({count} characters)", count=f"{len(text):,}")


def number_of(text: str) -> int:
    """Read a position in a list; anything else is 0."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0


def chosen(text: str, known: Mapping[str, T], usual: str) -> tuple[str, T]:
    """Choose an entry by its name; the usual one for an unknown name."""
    name = text if text in known else usual
    return name, known[name]


def budgets_of(look: Look, rows: Inspection) -> list[BudgetStatus]:
    """Say what is spent and left of each budget."""

    def read() -> list[BudgetStatus]:
        return budget_statuses(rows, look.config, look.now, look.complain)

    # By the settings, too: a budget that was changed counts at once.
    return look.paced(f"budgets {look.config.budgets}", read)


# --- names for people ----------------------------------------

MOST_NAMES = 2_000
"""People whose names are looked up for one page."""


def names_of(rows: Inspection) -> dict[str, str]:
    """Give the names of people by account, of a bounded number of them."""
    found: dict[str, str] = {}
    for row in islice(rows.entries(PERSON), MOST_NAMES):
        person = decoded(row)
        for account in person.accounts:
            if person.name:
                found[account] = person.name
    return found


def place_text(connector: str, chat: str, thread: str = "") -> str:
    """Name a chat for people: `lobby on page`, `kitchen on cli`."""
    inner = chat.partition("/")[0] if "/" in chat else chat
    text = inner + (f" / {thread}" if thread else "")
    return f"{text} · {connector}" if text else connector


def conversation_label(stream: str, known: Mapping[str, str]) -> dict[str, str]:
    """Say who talks with whom, and where, for the stream of a conversation.

    Args:
        known: names of people, by account.
    """
    try:
        key = parse_key(stream)
    except ValueError:
        return {"who": stream, "agent": "", "place": "", "lane": ""}
    account = f"{key.connector}/{key.sender}"
    who = known.get(account, key.sender) or place_text("", key.chat).removesuffix(" · ")
    place = place_text(key.connector, key.chat, key.thread)
    return {"who": who, "agent": key.agent, "place": place, "lane": key.lane}


PARTS = {
    "agent": "agent",
    "sessions": "conversations",
    "turns": "answers being made",
    "condensers": "summaries",
    "consultants": "questions among agents",
    "memory": "memory",
    "recollections": "recollections",
    "connector": "connector",
    "listener": "listener",
    "couriers": "couriers",
    "acknowledgements": "reactions",
    "bounce": "undeliverable answers",
}
"""What parts of the tree are called for people."""


def actor_label(name: str) -> str:
    """Name an actor for people: `anna · conversations`, `Sam with anna`."""
    below = name.removeprefix(f"{actor_names.ROOT}/")
    branch, _, rest = below.partition("/")
    owner, _, part = rest.partition("/")
    if branch not in {"agents", "connectors"} or not owner:
        return PARTS.get(below, below)
    kind, _, one = part.partition("/")
    if kind == "sessions" and one:
        label = conversation_label(one, {})
        return f"{label['who']} ↔ {label['agent'] or owner}"
    return f"{owner} · {PARTS.get(kind, kind)}" if kind else owner


SERVES = frozenset({"Admin", "Edges", "Listener", "HookRunner"})
"""Kinds of actors whose one message lasts as long as they do."""


def works(it: ActorStatistics) -> bool:
    """Whether an actor is at a message that is to end some time."""
    return it.busy_for > 0 and it.kind not in SERVES


def asking(
    requests: list[StoredEntry], guests: list[StoredEntry], now: float
) -> list[PairingRequest]:
    """Give who asks to be let in, the first one first."""
    found = rows_of(requests, guests).requests
    return sorted(
        (each for each in found if is_open(each, now)), key=lambda x: x.asked_at
    )


def applied_of(look: Look) -> Applied | None:
    """Read what the running settings are; None: nobody notes it, as in a test."""
    try:
        return read_applied(Path(look.config.store.path), look.config.nodes.name)
    except (OSError, ValueError):
        return None
