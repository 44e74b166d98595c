"""`callboard status`: how the company is doing, on one screen, and what to do.

`callboard tree` shows the actors of a running company, asked over its admin address.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import click
import httpx
import msgspec

from actors.people.pairing_rows import GUEST, PAIRING, rows_of
from actors.people.pairing_rules import is_open
from connectors.admin.display import lasting, make_safe
from connectors.admin.nodes import (
    ENDED,
    GONE,
    RUNS,
    STANDS_BY,
    ListedNode,
    NodeReply,
    NodeReport,
    ReadReport,
    ShowTree,
    unreadable,
)
from connectors.admin.probes import Ready
from connectors.admin.queue import read_waiting
from connectors.admin.schedule import all_rows
from connectors.admin.settings import Applied, NotNotedError, read_applied
from connectors.admin.tree import Forest, Node
from connectors.admin.usage import BudgetStatus, budget_statuses, sum_up, zone_of
from connectors.commands import config_option
from connectors.commands.common.database import (
    DatabaseChoice,
    database_options,
    load_settings,
)
from connectors.commands.common.output import (
    FAILED,
    complain,
    counted,
    json_option,
    say,
    say_json,
    table,
)
from connectors.commands.nodes import ask_all
from connectors.config.app import ADMIN_PORT, AppConfig, HttpConfig
from runtime import __version__
from runtime.clock import SystemClock
from runtime.errors import StoreError
from runtime.secret import Secret
from runtime.store.database import Inspection

NOT_READY = 503

PATIENCE = 10.0
"""Seconds in which it must answer."""

ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  where to ask, not to listen
"""By an address to listen on, one to ask."""


@click.command()
@config_option
@click.option("--connector", help="Ask this HTTP server instead of the admin address.")
@click.option("--node", help="Only this node of the company; else all nodes.")
@click.option("--past", default="", help="Of its children, those behind this NAME.")
@click.argument("name", default="")
@json_option
def tree_command(
    config: Path | None,
    connector: str | None,
    node: str | None,
    past: str,
    name: str,
    *,
    as_json: bool,
) -> int:
    """Show each actor that lives: state, mailbox, restarts, what it is about.

    With NAME only this one and those below. A name is the way to an actor, as
    callboard/agents/anna; its end will do (agents/anna, or anna) if no other actor's
    ends so. The company must be running; it is asked at the address of [admin].

    Beside a company of several nodes it shows the tree of each. A node that does not
    answer within 3 seconds is named with the reason, and the exit code is 1.
    """
    app = load_settings(config).value
    if connector is not None and node is not None:
        raise click.UsageError("give --connector or --node, not both")
    if connector is None:
        try:
            names = () if node is None else (node,)
            if replies := ask_all(app, ShowTree(name, past), names):
                return show_nodes(replies, as_json=as_json)
        except StoreError as error:
            if node is not None:
                raise
            complain(f"only the process on this machine is shown: {error}")
    show_own(app, connector, name, past, as_json=as_json)
    return 0


class NodeTree(msgspec.Struct, frozen=True):
    """The actor tree of one node."""

    node: str
    state: str
    """See `callboard nodes list`."""

    why: str
    """Why it has no tree here; empty: it has."""

    roots: tuple[Node, ...] = ()
    actors: int = 0


class NodeTrees(msgspec.Struct, frozen=True):
    """The actor trees of all nodes that were asked."""

    nodes: tuple[NodeTree, ...]


def show_nodes(replies: list[NodeReply], *, as_json: bool) -> int:
    """Show the trees of nodes; gives 1 if one is missing that should be there.

    Raises:
        click.ClickException: no node has the actor that is meant.
    """
    refused = [each for each in replies if each.is_refused]
    # An actor that is meant by its name lives on one node or on some of them.
    shown = [node_tree(each) for each in replies if not each.is_refused]
    shown = [each for each in shown if each.state != ENDED or len(replies) == 1]
    if refused and not any(each.roots for each in shown):
        for each in shown:
            complain(f"node {each.node} {each.state}: {each.why}")
        at = f"node {refused[0].node.name}: " if len(replies) == 1 else ""
        raise click.ClickException(make_safe(at + refused[0].why))
    if as_json:
        say_json(NodeTrees(tuple(shown)))
    else:
        for each in shown:
            why = f": {each.why}" if each.why else f"  {counted(each.actors, 'actor')}"
            say(make_safe(f"node {each.node}  {each.state}{why}"))
            for root in each.roots:
                for line in tree_lines(root, 1, each.node):
                    say(line)
    is_short = any(each.why and each.state != STANDS_BY for each in shown)
    return FAILED if is_short else 0


def node_tree(reply: NodeReply) -> NodeTree:
    """Read the tree of a node, or why there is none."""
    node, forest = reply.node, reply.read(Forest)
    if forest is None:
        why = reply.why or unreadable(node, __version__)
        return NodeTree(node.name, node.state, why)
    return NodeTree(node.name, node.state, "", forest.roots, forest.actors)


def show_own(
    app: AppConfig, connector: str | None, name: str, past: str, *, as_json: bool
) -> None:
    """Show the tree of the one process that runs on this machine."""
    door = find_door(app, connector, find_running(app))
    body = ask(door, "/actors", {"top": name, "past": past}).content
    forest = msgspec.json.decode(body, type=Forest)
    if as_json:
        say(msgspec.json.format(body).decode())
        return
    for node in forest.roots:
        for line in tree_lines(node, 0):
            say(line)


class Door(msgspec.Struct, frozen=True):
    """Where a running company can be asked."""

    host: str
    port: int
    key: Secret | None

    @property
    def address(self) -> str:
        """The beginning of its URLs."""
        host = ANYWHERE.get(self.host, self.host)
        place = f"[{host}]" if ":" in host else host
        return f"http://{place}:{self.port}"


def find_running(app: AppConfig) -> Applied | None:
    """Read what the process goes by that serves these settings; None: not known."""
    try:
        return read_applied(Path(app.store.path), app.nodes.name)
    except (NotNotedError, OSError):
        return None


def find_door(
    app: AppConfig, connector: str | None = None, running: Applied | None = None
) -> Door:
    """Find out where a running company can be asked: its admin address, if it has one.

    Args:
        connector: an HTTP server to ask instead.
        running: what the process that serves has noted; None: not known.

    Raises:
        click.UsageError: it cannot be asked anywhere, or its port is not known.
    """
    admin = app.admin
    port = ADMIN_PORT if admin.port is None else admin.port
    if connector is None and running is not None and running.admin is not None:
        return Door(*running.admin, admin.api_key)
    if connector is None and running is None and admin.is_on and port:
        return Door(admin.host, port, admin.api_key)
    servers = {
        name: each
        for name, each in app.connectors.items()
        if isinstance(each, HttpConfig) and connector in {None, name}
    }
    if not servers and connector is None and running is not None and admin.is_on:
        raise click.UsageError(
            f"process {running.process} has no address for operators: another program"
            f" had {admin.host}:{port} when it started. Set [admin] port, and restart"
            " it; a second company on one machine needs its own"
        )
    if not servers:
        raise click.UsageError(
            "the settings have no such HTTP server: set is_on = true and a port in"
            ' [admin], or add [connectors.http] kind = "http"'
        )
    if len(servers) > 1:
        names = ", ".join(servers)
        raise click.UsageError(f"there are several; give --connector: {names}")
    (name, http), *_ = servers.items()
    if not http.port:
        raise click.UsageError(
            f"connectors.{name}: give it a port, else none is known, or give [admin]"
            " one"
        )
    return Door(http.host, http.port, http.api_key)


def ask(door: Door, path: str, query: dict[str, str]) -> httpx.Response:
    """Ask a running company something.

    Returns:
        What it answers; its status is below 400, or 503.

    Raises:
        click.ClickException: nobody answers there, or it refuses.
    """
    address = f"{door.address}{path}"
    key = "" if door.key is None else door.key.reveal()
    headers = {"authorization": f"Bearer {key}"} if key else {}
    try:
        response = httpx.get(
            address, params=query, headers=headers, timeout=PATIENCE, trust_env=False
        )
    except httpx.HTTPError as error:
        why = str(error) or type(error).__name__
        text = f"nobody answers at {address}: {why}; is `callboard serve` running?"
        raise click.ClickException(text) from error
    if response.status_code == 404 and (why := explained_refusal(response)):
        raise click.ClickException(make_safe(why))
    if not response.is_success and response.status_code != NOT_READY:
        text = f"{address} answers {response.status_code}: {response.text[:200]}"
        raise click.ClickException(make_safe(text))
    return response


class ErrorText(msgspec.Struct):
    """What is read of an error."""

    message: str = ""


class ErrorReply(msgspec.Struct):
    """What is read of a refusal, as `connectors/web/server.py` writes it."""

    error: ErrorText


def explained_refusal(response: httpx.Response) -> str:
    """Give what it says of a name that nobody has; empty: it was another server."""
    try:
        return msgspec.json.decode(response.content, type=ErrorReply).error.message
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""


def tree_lines(node: Node, depth: int, at: str = "") -> Iterator[str]:
    """Write an actor and those below it, one on each line.

    Args:
        depth: how far it is set in.
        at: the node of the company that it lives on; empty: there is one process.
    """
    indent = "  " * depth
    yield indent + make_safe("  ".join(words(node)))
    for each in node.children:
        yield from tree_lines(each, depth + 1, at)
    if node.hidden:
        which = f"--node {at} {node.name}" if at else node.name
        more = f"{indent}  … {node.hidden:,} more: callboard tree {which}"
        yield make_safe(f"{more} --past {node.next}" if node.next else more)


def words(node: Node) -> Iterator[str]:
    """Say how an actor gets on."""
    yield node.label
    yield node.kind
    if node.state != "running":
        yield node.state
    yield f"{node.depth}/{node.limit}"
    if node.restarts:
        yield f"{node.restarts} restart{'' if node.restarts == 1 else 's'}"
    if node.handling:
        yield f"{node.handling} for {node.busy_for:.0f} s"
    if node.last_end:
        yield f"({node.last_end})"


LITTLE_LEFT = 0.1
"""Part of a budget's dollars that is told as little."""

LONG_WAIT = 600.0
"""Seconds for which nothing should wait; a turn that failed is begun anew before."""


NOBODY = "nobody serves: callboard serve"


class NodeStatus(ListedNode, frozen=True):
    """How one node of a company is doing."""

    ready: bool | None = None
    """Whether messages can be answered there; null: nobody could be asked."""

    why: str = ""
    """Why it is not ready, or could not be asked."""

    turns: int | None = None
    """Answers that are being made there."""


class CompanyStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a company is doing."""

    release: str
    database: str
    node: str = ""
    """Which node that process is; empty: it is none, or not known."""

    nodes: tuple[NodeStatus, ...] = ()
    """All nodes of the company; none: it is one process."""

    process: int | None = None
    """Id of the process that serves; null: none does, or it is not known."""

    since: float = 0.0
    """Unix seconds at which it took over its settings; 0: none serves."""

    ready: bool | None = None
    """Whether messages can be answered; null: nobody could be asked."""

    messages_waiting: int = 0
    messages_running: int = 0
    """Of them, those that are worked on, at any node."""

    messages_failed: int = 0
    oldest_message_seconds: float = 0.0
    deliveries_waiting: int = 0
    deliveries_failed: int = 0
    oldest_delivery_seconds: float = 0.0
    appointments: int = 0
    appointments_resting: int = 0
    """Of them, those that are paused."""

    turns_today: int = 0
    tokens_today: int = 0
    dollars_today: float = 0.0
    budgets: tuple[BudgetStatus, ...] = ()
    people_asking: int = 0
    """Those who ask to be let in. Nothing to do: anybody can ask."""

    to_do: tuple[str, ...] = ()
    """What needs somebody, most urgent first."""


@click.command()
@database_options
@json_option
def command(choice: DatabaseChoice, *, as_json: bool) -> int:
    """Say on one screen how the company is doing, and what to do.

    Reads the database, also a copy (--db), and asks the running company whether it is
    ready. Needs no secrets but the key of [admin], if it has one. Exit code 1 if
    something needs you.
    """
    found = look(choice)
    if as_json:
        say_json(found)
    else:
        for line in lines(found):
            say(line)
    return FAILED if found.to_do else 0


def look(choice: DatabaseChoice) -> CompanyStatus:
    """Look at everything."""
    settings = None if choice.settings is None else choice.settings.value
    path = choice.path
    found = CompanyStatus(release=__version__, database=choice.database.name)
    to_do: list[str] = []
    if settings is not None:
        found = with_process(found, settings, path, to_do)
    with choice.database.inspect() as rows:
        found = with_rows(found, rows, to_do)
        if settings is not None:
            found = with_spending(found, rows, settings, to_do)
    if settings is not None:
        replies = ask_all(settings, ReadReport())
        own = [each for each in replies if each.node.name == settings.nodes.name]
        if NOBODY in to_do and any(each.node.state == STANDS_BY for each in own):
            to_do.remove(NOBODY)
            found = msgspec.structs.replace(found, node=settings.nodes.name)
        found = with_nodes(found, replies, to_do)
    return msgspec.structs.replace(found, to_do=tuple(to_do))


def with_process(
    found: CompanyStatus, app: AppConfig, database: Path, to_do: list[str]
) -> CompanyStatus:
    """Add how the process is doing that serves."""
    try:
        running = read_applied(database, app.nodes.name)
    except (NotNotedError, OSError) as error:
        to_do.append(f"it runs, but does not say by what: {error}")
        return found
    if running is None:
        to_do.append(NOBODY)
        return found
    if running.mistake:
        to_do.append(f"mend the settings, which are not in use: {running.mistake}")
    if running.waiting:
        names = ", ".join(running.waiting)
        to_do.append(f"restart it, to take over {names}: callboard config diff")
    found = msgspec.structs.replace(
        found, process=running.process, since=running.at, node=running.node
    )
    try:
        answer = ask(find_door(app, running=running), "/readyz", {})
        ready = msgspec.json.decode(answer.content, type=Ready)
    except click.ClickException as error:
        to_do.append(f"nobody knows whether it is ready: {error.message}")
        return found
    except msgspec.MsgspecError:
        to_do.append("another program answers at the address of [admin]")
        return found
    to_do.extend(f"not ready: {make_safe(reason)}" for reason in ready.reasons)
    to_do.extend(make_safe(x) for x in ready.warnings if x not in ready.reasons)
    return msgspec.structs.replace(found, ready=ready.ready)


def with_nodes(
    found: CompanyStatus, replies: list[NodeReply], to_do: list[str]
) -> CompanyStatus:
    """Add the nodes of the company, and how each is doing.

    Args:
        replies: of the nodes; none if it is one process.
        to_do: what needs somebody, to be added to.
    """
    nodes = [node_status(each) for each in replies]
    for it in nodes:
        if it.state == GONE:
            to_do.append(
                f"node {it.name} is gone: start it, or callboard nodes remove {it.name}"
            )
        elif it.why and it.ready is None and it.state not in {STANDS_BY, ENDED}:
            to_do.append(f"node {it.name} says nothing: {it.why}")
        elif it.ready is False and it.name != found.node:
            to_do.append(f"node {it.name} is not ready: {it.why}")
    if nodes and not any(each.state == RUNS for each in nodes):
        to_do.append("no node runs the company: callboard nodes list")
    return msgspec.structs.replace(found, nodes=tuple(nodes))


def node_status(reply: NodeReply) -> NodeStatus:
    """Say how one node is doing."""
    node = msgspec.structs.asdict(reply.node)
    report = reply.read(NodeReport)
    if report is None:
        return NodeStatus(**node, why=reply.why or unreadable(reply.node, __version__))
    why = "; ".join(report.reasons)
    return NodeStatus(**node, ready=not why, why=why, turns=report.turns)


NODE_HEADERS = ("NODE", "STATE", "READY", "PARTS", "ANSWERING", "CONNECTORS")


def node_lines(nodes: Sequence[NodeStatus]) -> Iterator[str]:
    """Write a table of all nodes, with sums."""
    rows: list[tuple[object, ...]] = [
        (
            each.name,
            each.state,
            None if each.ready is None else "yes" if each.ready else "NO",
            each.parts or None,
            each.turns,
            ", ".join(each.connectors),
        )
        for each in nodes
    ]
    parts, turns = sum(x.parts for x in nodes), sum(x.turns or 0 for x in nodes)
    rows.append(("all", None, None, parts or None, turns, None))
    first, *rest = table(NODE_HEADERS, rows)
    yield f"nodes      {first}"
    yield from (f"{'':11}{line}" for line in rest)


def with_rows(
    found: CompanyStatus, rows: Inspection, to_do: list[str]
) -> CompanyStatus:
    """Add what waits and what failed."""
    waiting, oldest = read_waiting(rows), rows.oldest_open()
    appointments = all_rows(rows)
    pairing = rows_of(list(rows.entries(PAIRING)), list(rows.entries(GUEST)))
    now = SystemClock().wall()
    age = [
        max(0.0, now - at) if at else 0.0 for at in (oldest.message, oldest.delivery)
    ]
    failed = waiting.inbox.get("dead", 0), waiting.outbox.get("dead", 0)
    resting = sum(bool(each.it.paused) for each in appointments)
    if failed[0]:
        to_do.append(f"{counted(failed[0], 'message')} failed: callboard queue list")
    if failed[1]:
        what = counted(failed[1], "delivery")
        to_do.append(f"{what} given up: callboard queue list --unsent")
    if max(age) > LONG_WAIT:
        to_do.append(f"something waits for {lasting(max(age))}: callboard queue list")
    if resting:
        what = counted(resting, "appointment")
        to_do.append(f"{what} paused: callboard schedule list")
    return msgspec.structs.replace(
        found,
        messages_waiting=waiting.open,
        messages_running=waiting.inbox.get("running", 0),
        messages_failed=failed[0],
        oldest_message_seconds=round(age[0], 1),
        deliveries_waiting=waiting.unsaid,
        deliveries_failed=failed[1],
        oldest_delivery_seconds=round(age[1], 1),
        appointments=len(appointments),
        appointments_resting=resting,
        people_asking=sum(is_open(each, now) for each in pairing.requests),
    )


def with_spending(
    found: CompanyStatus, rows: Inspection, app: AppConfig, to_do: list[str]
) -> CompanyStatus:
    """Add what was spent today, and what is left of budgets."""
    now = SystemClock().wall()
    today = datetime.fromtimestamp(now, zone_of(app))
    began = today.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
    spent = sum_up(rows, "day", began, complain)[-1]
    budgets = budget_statuses(rows, app, now, complain)
    for each in budgets:
        what = f"budget of {make_safe(each.who)} for a {each.period}"
        whole = each.spent_usd + (each.left_usd or 0.0)
        if each.left_usd is not None and each.left_usd <= LITTLE_LEFT * whole:
            left = f"{each.left_usd:.2f} of {whole:.2f} $"
            to_do.append(f"{left} left in the {what}: callboard usage --budgets")
        tokens = each.spent_tokens + (each.left_tokens or 0)
        if each.left_tokens is not None and each.left_tokens <= LITTLE_LEFT * tokens:
            left = f"{each.left_tokens:,} of {tokens:,} tokens"
            to_do.append(f"{left} left in the {what}: callboard usage --budgets")
    return msgspec.structs.replace(
        found,
        turns_today=spent.runs,
        tokens_today=spent.input_tokens + spent.output_tokens,
        dollars_today=round(spent.cost, 6),
        budgets=tuple(budgets),
    )


def lines(it: CompanyStatus) -> Iterator[str]:
    """Write it for people."""
    readiness = {True: "yes", False: "NO", None: "not known"}[it.ready]
    runs = f"node {it.node} stands by" if it.node else "nobody serves"
    if it.process is not None:
        since = lasting(SystemClock().wall() - it.since)
        node = f"node {it.node}, " if it.node else ""
        runs = f"{node}process {it.process}, settings in use for {since}"
    yield f"callboard {it.release}: {runs}"
    yield f"database   {it.database}"
    if it.process is not None:
        yield f"ready      {readiness}"
    if it.nodes:
        yield from node_lines(it.nodes)
    waits = told(it.messages_waiting, "message", it.oldest_message_seconds)
    if it.nodes and it.messages_running:
        waits += f", {it.messages_running:,} of them being answered"
    unsent = told(it.deliveries_waiting, "delivery", it.oldest_delivery_seconds)
    yield f"waiting    {waits}, {unsent}"
    failed = counted(it.messages_failed, "message")
    yield f"failed     {failed}, {counted(it.deliveries_failed, 'delivery')}"
    resting = f", {it.appointments_resting} paused" if it.appointments_resting else ""
    yield f"schedule   {counted(it.appointments, 'appointment')}{resting}"
    if it.people_asking:
        who = counted(it.people_asking, "stranger")
        yield f"pairing    {who} asking to be let in: callboard pairing list"
    spent = f"{it.tokens_today:,} tokens, {it.dollars_today:.2f} $"
    yield f"today      {counted(it.turns_today, 'turn')}, {spent}"
    if it.budgets:
        yield f"budgets    {len(it.budgets)}; the least: {least_left(it.budgets)}"
    yield "" if it.to_do else "all is well"
    for each in it.to_do:
        yield f"to do      {make_safe(each)}"


def least_left(budgets: Sequence[BudgetStatus]) -> str:
    """Say of which budget the least is left: dollars, or tokens if none has dollars."""
    least = min(
        budgets, key=lambda x: (x.left_usd is None, x.left_usd or 0, x.left_tokens or 0)
    )
    left = f"{least.left_tokens or 0:,} tokens"
    if least.left_usd is not None:
        left = f"{least.left_usd:.2f} $"
    return f"{left} left for {make_safe(least.who)}"


def told(count: int, noun: str, age: float) -> str:
    """Count what waits, and say for how long."""
    return counted(count, noun) + (f" (oldest {lasting(age)})" if count else "")
