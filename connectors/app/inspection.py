"""What somebody may look at in a running company: actors, metrics, the page's views.

What looking needs is imported when somebody looks: a server at rest stays small.
"""

from __future__ import annotations

import importlib
import math
import platform
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
import trio

from actors.approvals.board import DecideQuestion, ReadQuestions
from actors.models.limiter import IsWorking
from actors.rules.text.limits import RecentMap
from actors.schedule.conditions import is_at_work
from actors.session import consent
from connectors.admin.display import OVER
from runtime import __version__
from runtime.errors import MisuseError, StoreError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from connectors.admin.nodes import ActByHand, NodeAsked, ReadActors, ReadReport
    from connectors.admin.settings import Origins
    from connectors.admin.tree import Forest
    from connectors.app.reload.by_hand import SettingsByHand
    from connectors.config.app import AppConfig
    from connectors.web.page.views.base import Act, ViewSources
    from runtime.clock import Clock
    from runtime.store.database import Database
    from runtime.store.rows import DeliveryState, InboxState
    from runtime.system import ActorSystem
    from runtime.telemetry.metrics import Gauge, Metrics

LOG = EventLog("metrics")

TREE = "connectors.admin.tree"
NAMES = "connectors.admin.tree"
VIEWS = "connectors.web.page.views.base"
BY_HAND = "connectors.app.reload.by_hand"

MISDIRECTED = 421
"""Status of HTTP: another node was meant. Source: RFC 9110 15.5.20."""


# Chosen: what all people do by hand in a day.
MOST_ASKED = 1_000
"""Wishes that are known again."""

FindName = Callable[[Iterable[str], str], str]
"""What `connectors.admin.tree` does."""


def write_tree(
    system: ActorSystem, redact: Callable[[str], str], top: str, past: str
) -> bytes:
    """Write the actor tree for `callboard tree`, as JSON.

    `connectors/admin/tree.py` says what stands in it.

    Raises:
        MisuseError: `top` means no actor, or more than one.
    """
    read_tree = cast("Callable[..., Forest]", importlib.import_module(TREE).read_tree)
    find_name = cast("FindName", importlib.import_module(NAMES).find_name)
    actors = list(system.actors())
    if top:
        top = find_name((each.name for each in actors), top)
    return msgspec.json.encode(read_tree(actors, redact, top=top, past=past))


class NodeAnswers:
    """Answers other nodes, and commands: for what runs in this process.

    Args:
        node: the name of this one.
        key: see `connectors.files.receipt_key`.
        tree: writes the actor tree; see `write_tree`.
        inside: gives what views look at.
    """

    def __init__(
        self,
        node: str,
        key: bytes,
        tree: Callable[[str, str], bytes],
        inside: Callable[[], ViewSources],
    ) -> None:
        self._node = node
        self._key = key
        self._tree = tree
        self._make_inside = inside
        self._inside: ViewSources | None = None
        self._asked: RecentMap[str, None] = RecentMap(MOST_ASKED)

    def refusal(self, node: str, seal: str, body: bytes) -> tuple[int, bytes] | None:
        """Refuse what is not sealed, or is for another node; see `NodeQuestions`."""
        from connectors.admin import nodes  # noqa: PLC0415  only several nodes need it

        # First: others need not learn what this node is called.
        if not nodes.is_sealed(self._key, node, body, seal):
            return 401, b"not sealed with the key that lies beside the database here"
        if node != self._node:
            return MISDIRECTED, f"this is node {self._node}".encode()
        return None

    async def answer(self, body: bytes) -> tuple[int, bytes]:
        """Answer a question; see `connectors.chat.platforms.NodeQuestions`."""
        from connectors.admin import nodes  # noqa: PLC0415  as in `refusal`

        try:
            asked = msgspec.json.decode(body, type=nodes.NodeQuestion)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return 400, f"release {__version__} does not know this question".encode()
        if isinstance(asked, nodes.ShowTree):
            try:
                # Why a thread: many actors take time.
                tree = partial(self._tree, asked.top, asked.past)
                return 200, await trio.to_thread.run_sync(tree)
            except MisuseError as error:
                return 404, str(error).encode()
        return await self._answer_of_company(asked)

    async def _answer_of_company(
        self, asked: ReadReport | ReadActors | ActByHand | NodeAsked
    ) -> tuple[int, bytes]:
        once = getattr(asked, "once", "")
        if once in self._asked:  # by another way, or by somebody who overheard it
            return 409, b"that was asked already; look whether it was done"
        if once:
            self._asked[once] = None
        if self._inside is None:
            self._inside = self._make_inside()
        if isinstance(asked, ReadQuestions | DecideQuestion):
            found = consent.answer_node(asked, self._inside.services)
            if found is False:
                return 409, b"nobody waits for it here"
            return 200, msgspec.json.encode(found)
        if isinstance(asked, IsWorking):
            is_so = await is_at_work(self._inside.system.find, asked.prefix)
            return 200, msgspec.json.encode(is_so)
        return await answer_of_views(self._inside, asked)


async def answer_of_views(
    inside: ViewSources, asked: ReadReport | ReadActors | ActByHand
) -> tuple[int, bytes]:
    """Answer another node by what views of the page show and do here."""
    # Why here: at most nodes nobody looks at a page.
    from connectors.admin.nodes import ActByHand, ReadActors  # noqa: PLC0415
    from connectors.web.page.views import actors, overview, queue  # noqa: PLC0415
    from connectors.web.page.views.base import (  # noqa: PLC0415
        Refusal,
        ViewRequest,
        read_view,
    )

    acts: dict[str, Act] = {
        "actors/kill": actors.kill_here,
        "queue/stop": queue.stop_here,
        overview.APPROVE: partial(overview.decide_here, is_approved=True),
        overview.DENY: partial(overview.decide_here, is_approved=False),
    }
    found: object
    try:
        match asked:
            case ReadActors(query):
                request = ViewRequest("", inside, query)
                found = await read_view(request, actors.read_here)
            case ActByHand(action, form, person, connector) if action in acts:
                request = ViewRequest(person, inside, form=form, connector=connector)
                found = await acts[action](request)
            case ActByHand(action):
                return 409, f"release {__version__} does not know {action}".encode()
            case _:
                found = await overview.report_here(ViewRequest("", inside))
    except Refusal as error:
        return 409, str(error).encode()
    return 200, msgspec.json.encode(found)


DEAD: tuple[DeliveryState, ...] = ("dead",)
DELIVERIES: tuple[DeliveryState, ...] = ("pending", "sending", "unknown")
MESSAGES: tuple[InboxState, ...] = ("accepted", "running", "dead")

# Chosen: scrapers ask every 15 s or more often, and may be several.
FRESH = 5.0
"""Seconds for which what was read in the database is shown."""

SHARE = 0.02
"""Part of the time that reading it may take, in a large database."""


class Gauges:
    """Shows scrapers what nobody counts: readiness, what waits, what is left.

    Args:
        database: has what waits; read in threads.
    """

    def __init__(self, metrics: Metrics, database: Database, clock: Clock) -> None:
        self._metrics = metrics
        self._database = database
        self._clock = clock
        self._next_at = -math.inf
        self._node: tuple[Gauge, Gauge] | None = None  # only several nodes have them
        gauge = metrics.gauge
        self._ready = gauge(
            "callboard_ready", "1 while messages can be answered, else 0."
        )
        self._up = gauge(
            "callboard_connector_up",
            "1 while a connector runs and hears its platform, else 0.",
            ("connector",),
        )
        self._messages = gauge(
            "callboard_messages_pending",
            "Messages that wait (accepted), are worked on (running), or failed (dead).",
            ("state",),
        )
        self._deliveries = gauge(
            "callboard_deliveries_pending",
            "Deliveries that wait (pending), are being sent (sending), are of unknown"
            " fate (unknown), or failed (dead).",
            ("state",),
        )
        self._oldest_message = gauge(
            "callboard_oldest_message_seconds",
            "Age of the oldest message that is not answered; 0: there is none.",
        )
        self._oldest_delivery = gauge(
            "callboard_oldest_delivery_seconds",
            "Age of the oldest delivery that is not sent; 0: there is none.",
        )
        self._size = gauge("callboard_store_bytes", "Size of the database file.")
        self._free = gauge(
            "callboard_store_free_bytes", "Room on the disk that has the database."
        )
        self._left = gauge(
            "callboard_budget_left_ratio",
            "Part of a budget's hard limit that whoever has the least has left.",
            ("scope", "who", "period"),
        )
        gauge(
            "callboard_build_info",
            "Always 1; the labels say which release runs, and on what.",
            ("version", "python", "sqlite"),
        ).set(1, __version__, platform.python_version(), database.engine_version())

    def show_node(self, parts: int, *, runs_company: bool) -> None:
        """Show what a node of several does.

        Args:
            parts: how many of the 256 parts of all shared chats it works on.
            runs_company: whether what is not shared is done here.
        """
        if self._node is None:
            gauge = self._metrics.gauge
            self._node = (
                gauge(
                    "callboard_node_parts",
                    "Parts of 256 of the shared chats that this node works on.",
                ),
                gauge(
                    "callboard_node_runs_company",
                    "1 while this node does what nodes do not share, else 0.",
                ),
            )
        shown, runs = self._node
        shown.set(parts)
        runs.set(runs_company)

    async def refresh(
        self,
        reasons: Collection[str],
        connectors: Mapping[str, bool],
        budgets: Iterable[tuple[str, str, str, float]],
    ) -> None:
        """Bring all of them up to date; in a trio task.

        Args:
            reasons: why messages cannot be answered.
            connectors: whether each runs, and hears its platform.
            budgets: scope, who, period, and the part that is left.
        """
        self._ready.set(not reasons)
        for name, is_up in connectors.items():
            self._up.set(is_up, name)
        for scope, who, period, left in budgets:
            self._left.set(left, scope, who, period)
        began_at = self._clock.monotonic()
        if began_at < self._next_at:
            return
        self._next_at = math.inf  # one at a time
        try:
            await trio.to_thread.run_sync(self._read)
        finally:
            took = self._clock.monotonic() - began_at
            self._next_at = began_at + max(FRESH, took / SHARE)

    def _read(self) -> None:
        """Read what waits; a database that cannot be read leaves it as it was."""
        try:
            with self._database.inspect() as rows:
                counts, oldest = rows.counts(), rows.oldest_open()
                failed = rows.count_deliveries(DEAD, OVER)
        except StoreError as error:
            LOG.warning("what waits could not be counted", why=str(error))
            return
        for state in MESSAGES:
            self._messages.set(counts.inbox.get(state, 0), state)
        for each in DELIVERIES:
            self._deliveries.set(counts.outbox.get(each, 0), each)
        self._deliveries.set(failed, "dead")
        now = self._clock.wall()
        for shown, since in (
            (self._oldest_message, oldest.message),
            (self._oldest_delivery, oldest.delivery),
        ):
            shown.set(max(0.0, now - since) if since else 0.0)
        path = Path(self._database.name)
        with suppress(OSError):
            self._size.set(path.stat().st_size)
            self._free.set(shutil.disk_usage(path.parent).free)

    def render(self, accept: str, is_fresh: bool) -> tuple[bytes, str]:  # noqa: FBT001  as in `Operations`
        """Write all metrics; what does not answer is not ready.

        Args:
            is_fresh: whether `refresh` has just succeeded.

        Returns:
            The metrics, and their media type.
        """
        if not is_fresh:
            self._ready.set(0)
        return self._metrics.render_as(accept)


def inside_type() -> type[ViewSources]:
    """Give the type of what the page's views look at."""
    return cast("type[ViewSources]", importlib.import_module(VIEWS).ViewSources)


def editor_of(
    files: tuple[Path, ...],
    running: Callable[[], AppConfig],
    origins: Callable[[], Origins],
) -> SettingsByHand:
    """Make what changes settings by hand, for the page."""
    make = cast("type[SettingsByHand]", importlib.import_module(BY_HAND).SettingsByHand)
    return make(files, running, origins)
