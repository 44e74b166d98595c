"""Is it well, and what should I do? The state of the company at a glance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import islice

import msgspec
import trio

from actors import names
from actors.approvals.permissions import OpenApproval
from actors.journal import records
from actors.journal.records import UsageRecord
from actors.people.pairing_rows import GUEST, PAIRING
from actors.protocol import ApprovalDecided
from connectors.admin.display import read_record
from connectors.admin.nodes import (
    GONE,
    Account,
    NodeReply,
    NodeReport,
    ReadReport,
    unreadable,
)
from connectors.admin.queue import (
    WaitingCounts,
    count_unsent,
    read_waiting,
    shown_delivery,
    sum_figures,
)
from connectors.admin.usage import (
    BESIDE_ANSWERS,
    DAY,
    GOOD_ENDS,
    Minute,
    Trends,
    chart_lines,
    place_of,
    quantile,
    sample_of,
)
from connectors.web.page.views.base import (
    Look,
    Refusal,
    View,
    ViewRequest,
    ViewSources,
    ViewValues,
    act_at,
    actor_label,
    applied_of,
    asking,
    budgets_of,
    chosen,
    look_of,
    place_text,
    read_view,
    record_change,
    works,
)
from connectors.web.page.words import beginning
from runtime import __version__
from runtime.actor.statistics import ActorStatistics
from runtime.errors import KernelError, MisuseError, StoreError
from runtime.telemetry.logs import EventLog

LOG = EventLog("page")

HANGS = 60.0
"""Seconds with one message after which an actor is listed as stuck."""

WAITS = 60.0
"""Seconds that the oldest message may wait before it is listed."""

SLOW_LOOP = 0.5
"""Seconds of loop lag above which the overview says so."""

MOST_LISTED = 5
"""Of one kind of things to do."""

MOST_SEEDED = 20_000
"""Records of the last day that are read once, for the lines."""

MOST_CHARACTERS = 1_500
"""Of a question that is shown whole."""

SPANS = {"hour": (3_600.0, 60), "day": (DAY, 96)}
"""Seconds, and points of a line."""


class Todo(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that wants a person."""

    tone: str
    """`bad`: something does not work; `warn`: it will, or it costs."""

    text: str
    """English, with places for `values`."""

    values: dict[str, object] = {}
    href: str = ""
    label: str = ""
    """What the link says."""

    words: str = ""
    """What is asked, as people read it in their chat."""

    approval: str = ""
    """The id of the approval that is decided here; empty: it is none."""

    question: str = ""
    """The id of the delivery that asks for it. Ids of approvals are short: others may
    have the same at other nodes, or later."""


async def load(asked: ViewRequest) -> ViewValues:
    """Show the overview: of all nodes, if there are several."""
    inside = asked.inside
    reasons = await inside.readiness()
    replies = await inside.ask_others(ReadReport())
    await watch(inside)

    def read(look: Look) -> ViewValues:
        todos = [
            Todo(tone="bad", text="{reason}", values={"reason": x}) for x in reasons
        ]
        nodes = NodesShown(look, replies)
        todos += nodes.todos()
        todos += approval_todos(look, [*open_approvals(inside), *nodes.approvals()])
        return nodes.added_to(read_all(look, todos), reasons)

    return await read_view(asked, read)


def open_approvals(inside: ViewSources) -> list[tuple[OpenApproval, str]]:
    """Give what waits here, each with the id of the delivery that asks for it."""
    board = inside.services.board
    return [(each, board.question_of(each.id)) for each in board.open]


async def report_here(asked: ViewRequest) -> NodeReport:
    """Say how the node is doing that runs in this process."""
    inside = asked.inside
    reasons = await inside.readiness()
    look = look_of(asked)

    def read() -> NodeReport:
        actors = inside.system.actors()
        running = {each.name for each in actors}
        sums = sum_figures(inside.metrics.figures())
        listed = accounts(look, actors, sums.connectors)
        return NodeReport(
            reasons=tuple(map(inside.services.redact, reasons)),
            actors=len(actors),
            turns=turns_of(actors),
            cost=sums.cost,
            accounts=tuple(x for x in listed if names.connector(x.name) in running),
            approvals=tuple(open_approvals(inside)),
        )

    return await trio.to_thread.run_sync(
        read, abandon_on_cancel=True, limiter=inside.threads
    )


def turns_of(actors: Sequence[ActorStatistics]) -> int:
    """Count the answers that are being made."""
    return sum(each.kind == "Turn" for each in actors)


class NodesShown:
    """What the overview shows of all nodes; nothing if there is one process.

    Args:
        replies: of the other nodes that could be asked.
    """

    def __init__(self, look: Look, replies: Sequence[NodeReply]) -> None:
        circle = look.inside.nodes
        self._own = "" if circle is None else circle.name
        self._ways = () if circle is None else tuple(circle.ways())
        self._whys = {each.node.name: why_silent(each) for each in replies}
        self._reports = {
            each.node.name: report
            for each in replies
            if (report := each.read(NodeReport)) is not None
        }

    def todos(self) -> list[Todo]:
        """Say which nodes do not answer, are gone, or are not ready."""
        found: list[tuple[str, str]] = []
        for node in (way.listed for way in self._ways):
            report = self._reports.get(node.name)
            if report is not None:
                found += [(node.name, reason) for reason in report.reasons]
            elif node.state == GONE or self._whys.get(node.name):
                found.append((node.name, self._whys.get(node.name) or node.state))
        return [
            Todo(
                tone="warn",
                text="Node {node}: {reason}",
                values={"node": node, "reason": reason},
                href="#nodes",
                label="Look",
            )
            for node, reason in found
        ]

    def approvals(self) -> list[tuple[OpenApproval, str]]:
        """Give what waits for an approval at other nodes."""
        return [x for each in self._reports.values() for x in each.approvals]

    def added_to(
        self, values: dict[str, object], reasons: Sequence[str]
    ) -> dict[str, object]:
        """Add the nodes to what the overview shows, and sum up what it counts.

        Args:
            reasons: why messages cannot be answered here; none: they can.
        """
        turns = msgspec.convert(values["turns"], int)
        shown: list[dict[str, object]] = []
        for node in (way.listed for way in self._ways):
            report = self._reports.get(node.name)
            is_own = node.name == self._own
            whys = reasons if is_own else () if report is None else report.reasons
            answers = is_own or report is not None
            shown.append(
                {
                    "name": node.name,
                    "state": node.state,
                    "parts": node.parts,
                    "connectors": ", ".join(node.connectors),
                    "release": node.release,
                    "machine": node.machine,
                    "turns": turns if is_own else report.turns if report else None,
                    "is_ready": answers and not whys,
                    "why": "; ".join(whys) or self._whys.get(node.name, ""),
                }
            )
        further = [each.accounts for each in self._reports.values()]
        own = msgspec.convert(values["accounts"], list[Account])
        return {
            **values,
            "own": self._own,
            "nodes": shown,
            "cost": msgspec.convert(values["cost"], float)
            + sum(each.cost for each in self._reports.values()),
            "turns": turns + sum(each.turns for each in self._reports.values()),
            "accounts": [merged(each, further) for each in own],
        }


def why_silent(reply: NodeReply) -> str:
    """Say why nothing is known of a node; empty: something is."""
    if reply.why or reply.read(NodeReport) is not None:
        return reply.why
    return unreadable(reply.node, __version__)


def merged(own: Account, further: Sequence[Sequence[Account]]) -> Account:
    """Put together what all nodes say of a connector.

    Args:
        further: what each other one says of those that it runs.
    """
    others = [x for each in further for x in each if x.name == own.name]
    here = [] if own.state in {ELSEWHERE, NOWHERE} else [own]
    running = [*here, *others]
    wrong = [each.state for each in running if each.state != "running"]
    return Account(
        name=own.name,
        kind=own.kind,
        state=wrong[0] if wrong else running[0].state if running else own.state,
        restarts=sum(x.restarts for x in (own, *others)),
        messages=sum(x.messages for x in (own, *others)),
        last_end=next((x.last_end for x in (own, *others) if x.last_end), ""),
    )


def approval_todos(
    look: Look, approvals: Sequence[tuple[OpenApproval, str]]
) -> list[Todo]:
    """Say which agents wait for leave, and for what, in whatever chat it was asked.

    Args:
        approvals: what waits, each with the id of the delivery that asks for it.
    """
    words = asked_words(look, approvals[:MOST_LISTED])
    found = [
        Todo(
            tone="warn",
            text="{agent} asks whether it may use {tool}, in {place}",
            values={
                "agent": approval.agent,
                "tool": approval.tool,
                "place": place_text(approval.address.connector, approval.address.chat),
            },
            words=words.get(question, ""),
            approval=approval.id,
            question=question,
        )
        for approval, question in approvals[:MOST_LISTED]
    ]
    more = len(approvals) - MOST_LISTED
    if more > 0:
        found.append(
            Todo(
                tone="warn",
                text="Further tool calls that wait for an approval: {count}",
                values={"count": more},
            )
        )
    return found


def asked_words(
    look: Look, approvals: Sequence[tuple[OpenApproval, str]]
) -> dict[str, str]:
    """Read what was asked, by the id of the delivery; what cannot be read is left out.

    Why no error: an approval can be decided without its words, and what is wrong with
    the database is a point of its own.
    """
    found: dict[str, str] = {}
    with suppress(StoreError, OSError):
        if approvals:
            with look.database.inspect() as rows:
                for _, question in approvals:
                    with suppress(MisuseError):
                        text = shown_delivery(rows.delivery(question)).text
                        found[question] = beginning(text, MOST_CHARACTERS)
    return found


def read_all(look: Look, todos: list[Todo]) -> dict[str, object]:
    """Read metrics, actors, the queue and what is to be done."""
    inside, query = look.inside, look.query
    actors, trends = inside.system.actors(), inside.trends
    waiting, trouble = waiting_of(look)
    if trouble:
        todos.append(Todo(tone="bad", text="{reason}", values={"reason": trouble}))
    else:
        trends = trends_of(look)
        todos += rows_todos(look, waiting)
    todos += [*connector_todos(look, actors), *actor_todos(actors)]
    todos += [*settings_todos(look)]
    sums = sum_figures(inside.metrics.figures())
    if sums.lag > SLOW_LOOP:
        todos.append(
            Todo(
                tone="warn",
                text="The event loop is late by {seconds} s: something blocks it",
                values={"seconds": round(sums.lag, 1)},
                href="/actors",
                label="See what runs",
            )
        )
    todos.sort(key=lambda each: each.tone != "bad")
    span, _ = chosen(query.get("span", ""), SPANS, "day")
    return {
        "todos": todos,
        "verdict": todos[0].tone if todos else "good",
        "sums": sums,
        "cost": sums.cost,
        "open": 0 if waiting is None else waiting.open,
        "unsaid": 0 if waiting is None else waiting.unsaid,
        "dead": 0 if waiting is None else waiting.dead,
        "turns": turns_of(actors),
        "agents": len(look.config.agents),
        "accounts": accounts(look, actors, sums.connectors),
        "letters": letters(look),
        "now": look.now,
        "span": span,
        "spans": list(SPANS),
        "charts": charts(look, trends, span),
    }


def waiting_of(look: Look) -> tuple[WaitingCounts | None, str]:
    """Count waiting messages; or give the error."""
    try:
        with look.database.inspect() as rows:
            return look.paced("waiting", lambda: read_waiting(rows)), ""
    except StoreError as error:
        return None, str(error)


# --- things to do ----------------------------------------


def rows_todos(look: Look, waiting: WaitingCounts | None) -> list[Todo]:
    """List what the rows say: failures, waiting messages, strangers, budgets."""
    found: list[Todo] = []
    with look.database.inspect() as rows:
        oldest = rows.oldest_open().message
        unsent = count_unsent(rows)
        requests = asking(
            list(rows.entries(PAIRING)), list(rows.entries(GUEST)), look.now
        )
        budgets = budgets_of(look, rows)
    failed = 0 if waiting is None else waiting.inbox.get("dead", 0)
    if failed:
        found.append(
            Todo(
                tone="warn",
                text="Messages that could not be answered: {count}",
                values={"count": failed},
                href="/queue?state=failed",
                label="See why",
            )
        )
    if unsent:
        found.append(
            Todo(
                tone="warn",
                text="Answers that were perhaps not sent: {count}",
                values={"count": unsent},
                href="/queue#unsent",
                label="See which",
            )
        )
    if oldest and look.now - oldest > WAITS:
        found.append(
            Todo(
                tone="warn",
                text="The oldest message has waited for {span}",
                values={"seconds": look.now - oldest},
                href="/queue?state=pending",
                label="See what waits",
            )
        )
    found += [
        Todo(
            tone="warn",
            text="{name} ({account}) asks to be let in",
            values={"name": each.name, "account": each.account},
            href="/people",
            label="Decide",
        )
        for each in requests[:MOST_LISTED]
    ]
    for each in budgets:
        if 0 in {each.left_usd, each.left_tokens}:
            found.append(
                Todo(
                    tone="bad",
                    text="The budget of this {period} is used up: {who}",
                    values={"period": each.period, "who": each.who or each.scope},
                    href="/usage#budgets",
                    label="See what it went on",
                )
            )
    return found


def connector_todos(look: Look, actors: Sequence[ActorStatistics]) -> list[Todo]:
    """List connectors that do not run."""
    states = {each.name: each.state for each in actors}
    return [
        Todo(
            tone="bad",
            text="The connector {name} does not run",
            values={"name": name},
            href=f"/actors?find={name}",
            label="See why",
        )
        for name in look.config.connectors
        if states.get(names.connector(name), "dead") != "running"
        and name
        in {x.split("/")[2] for x in states if x.startswith(f"{names.CONNECTORS}/")}
    ]


def actor_todos(actors: Sequence[ActorStatistics]) -> list[Todo]:
    """List what hangs, and what failed."""
    stuck = [each for each in actors if works(each) and each.busy_for > HANGS]
    stuck.sort(key=lambda each: -each.busy_for)
    found = [
        Todo(
            tone="warn",
            text="{actor} has been at one message for {span}",
            values={"actor": actor_label(each.name), "seconds": each.busy_for},
            href="/actors",
            label="Look",
        )
        for each in stuck[:MOST_LISTED]
    ]
    failed = sum(bool(each.last_end) for each in actors)
    if failed:
        found.append(
            Todo(
                tone="warn",
                text="Actors that failed and were restarted: {count}",
                values={"count": failed},
                href="/actors?show=failed",
                label="See why",
            )
        )
    return found


def settings_todos(look: Look) -> list[Todo]:
    """List settings that were not taken over."""
    applied = applied_of(look)
    if applied is None:
        return []
    found: list[Todo] = []
    if applied.mistake:
        found.append(
            Todo(
                tone="bad",
                text="The settings that were saved last have a mistake",
                href="/settings",
                label="See where",
            )
        )
    if applied.waiting:
        found.append(
            Todo(
                tone="warn",
                text="Settings that wait for a restart: {count}",
                values={"count": len(applied.waiting)},
                href="/settings",
                label="See which",
            )
        )
    return found


# --- connectors and letters ----------------------------------------


def accounts(
    look: Look, actors: Sequence[ActorStatistics], brought: Mapping[str, int]
) -> list[Account]:
    """Give the state of each connector, with its number of messages."""
    by_name = {each.name: each for each in actors}
    found: list[Account] = []
    for name, config in look.config.connectors.items():
        it = by_name.get(names.connector(name))
        branch = names.connector(name).removesuffix("connector")
        below = [each for each in actors if each.name.startswith(branch)]
        ends = [each.last_end for each in below if each.last_end]
        found.append(
            Account(
                name=name,
                kind=str(config.__struct_config__.tag),
                state=it.state if it is not None else state_of_absent(look, name),
                restarts=sum(each.restarts for each in below),
                messages=brought.get(name, 0),
                last_end=ends[0] if ends else "",
            )
        )
    return found


ELSEWHERE, NOWHERE = "on another node", "not running"
"""States of a connector that does not run in this process."""


def state_of_absent(look: Look, connector: str) -> str:
    """Say what there is of a connector that does not run in this process."""
    duties = look.inside.services.duties
    is_leased = duties.parts is not None and duties.is_leased(connector)
    is_elsewhere = is_leased and connector not in duties.accounts
    return ELSEWHERE if is_elsewhere else NOWHERE


def letters(look: Look) -> list[dict[str, str]]:
    """List the last messages between actors that nobody took."""
    last = look.inside.system.dead_letters.last()[-2 * MOST_LISTED :]
    return [
        {"who": each.recipient, "what": f"{type(each.message).__name__}: {each.reason}"}
        for each in reversed(last)
    ]


# --- lines over time ----------------------------------------


async def watch(inside: ViewSources) -> None:
    """Take one sample of the metrics, and count what waits for a person.

    A database that does not answer is left out; the next sample goes on.
    """
    now = inside.services.clock.wall()

    def look() -> tuple[float, dict[str, int]]:
        with inside.database.inspect() as rows:
            since = rows.oldest_open().message
            clock = inside.services.clock.monotonic
            counts = inside.paced.get("waiting", lambda: read_waiting(rows), clock)
            requests = asking(
                list(rows.entries(PAIRING)), list(rows.entries(GUEST)), now
            )
            failed = counts.inbox.get("dead", 0) + count_unsent(rows)
        badges = {"queue": failed, "people": len(requests)}
        return (max(0.0, now - since) if since else 0.0), badges

    def sample() -> None:
        age, badges = look()
        inside.trends.take(sample_of(inside.metrics.figures(), now, age))
        badges["overview"] = len(inside.services.board.ids)
        inside.trends.badges = badges

    try:
        await trio.to_thread.run_sync(
            sample, abandon_on_cancel=True, limiter=inside.threads
        )
    except (KernelError, OSError) as error:
        LOG.debug("no sample taken", why=str(error))


def trends_of(look: Look) -> Trends:
    """Give what the last day looked like.

    One process enters its records once, and counts on by itself. Of several nodes each
    counts only what it does, so that their records are read again and again.
    """
    trends = look.inside.trends
    if look.inside.nodes is not None:
        return look.paced("trends", lambda: recorded(look, trends))
    if not trends.is_seeded:
        trends.is_seeded = True
        enter_records(look, trends)
    return trends


def recorded(look: Look, trends: Trends) -> Trends:
    """Count what the records of all nodes say of the last day.

    Args:
        trends: has what no record says: waits, and lags of this process.
    """
    found = Trends()
    found.take_waits(trends)
    enter_records(look, found)
    return found


def enter_records(look: Look, trends: Trends) -> None:
    """Enter what the store knows of the last day, but for what samples count."""
    since, past = look.now - DAY, trends.uncounted
    with look.database.inspect() as rows:
        for row in islice(rows.records(records.USAGE, since, past), MOST_SEEDED):
            body = read_record(row, UsageRecord, look.complain)
            if body is None:
                continue
            minute = trends.minute(row.at)
            minute.tokens += body.input_tokens + body.output_tokens
            minute.dollars += body.cost
            if body.status in BESIDE_ANSWERS:
                continue
            minute.times[place_of(body.seconds)] += 1
            minute.errors += body.status not in GOOD_ENDS
        for row in islice(rows.records(records.AUDIT, since, past), MOST_SEEDED):
            trends.minute(row.at).messages += 1


def charts(look: Look, trends: Trends, span: str) -> list[dict[str, object]]:
    """Draw the lines of a span."""
    seconds, points = SPANS[span]
    past = trends.series(look.now, seconds, points)
    whole = past[0].__class__()
    for each in past:
        whole.add(each)

    def line(
        title: str,
        kind: str,
        total: float | None,
        *rows: Sequence[float | None],
        first: str = "",
        second: str = "",
    ) -> dict[str, object]:
        drawn = chart_lines(*rows)
        return {
            "title": title,
            "kind": kind,
            "total": total,
            "lines": drawn.lines,
            "area": drawn.area,
            "top": drawn.top,
            "first": first,
            "second": second,
        }

    def row(value: Callable[[Minute], float]) -> list[float | None]:
        return [value(each) for each in past]

    return [
        line("Messages", "number", whole.messages, row(lambda x: x.messages)),
        line(
            "Time to answer",
            "seconds",
            quantile(whole.times, 0.5),
            [quantile(each.times, 0.5) for each in past],
            [quantile(each.times, 0.95) for each in past],
            first="half within",
            second="95 of 100 within",
        ),
        line("Dollars", "money", whole.dollars, row(lambda x: x.dollars)),
        line("Tokens", "number", whole.tokens, row(lambda x: x.tokens)),
        line("Failed answers", "number", whole.errors, row(lambda x: x.errors)),
        line(
            "Longest wait in the queue",
            "seconds",
            past[-1].queue_age,
            row(lambda x: x.queue_age),
        ),
        line("Event loop lag", "seconds", past[-1].lag, row(lambda x: x.lag)),
    ]


# --- approvals ----------------------------------------


async def approve(asked: ViewRequest) -> str:
    """Let a tool call run."""
    return await decide(asked, is_approved=True)


async def deny(asked: ViewRequest) -> str:
    """Do not let a tool call run."""
    return await decide(asked, is_approved=False)


DECIDED = "somebody has decided about it already, or nobody waits any more"


async def decide(asked: ViewRequest, *, is_approved: bool) -> str:
    """Decide about a tool call, as `/approve` and `/deny` in its chat do, at any node.

    Who waits for it is at one of them; the others refuse.
    """
    circle, question = asked.inside.nodes, asked.form.get("question", "")
    others = [] if circle is None else circle.others()
    board = asked.inside.services.board
    is_here = any(board.question_of(each.id) == question for each in board.open)
    if is_here or not others:
        return await decide_here(asked, is_approved=is_approved)
    return await act_at(asked, APPROVE if is_approved else DENY, others)


APPROVE, DENY = "overview/approve", "overview/deny"


async def decide_here(asked: ViewRequest, *, is_approved: bool) -> str:
    """Decide about a tool call that waits in this process."""
    services = asked.inside.services
    wanted = services.board.asked_by(asked.form.get("question", ""))
    approval = next((x for x in services.board.open if x.id == wanted), None)
    by = f"{asked.connector}/{asked.person}"
    if approval is None:
        raise Refusal(asked.say(DECIDED))
    if not services.terms.admits(approval, by):
        raise Refusal(
            asked.say("you may not decide about it; the settings name who may")
        )
    waiting = services.board.take(approval)
    if waiting is None:
        raise Refusal(asked.say(DECIDED))
    try:
        waiting.tell(ApprovalDecided(approval, is_approved, by))
    except KernelError as error:
        raise Refusal(services.redact(str(error))) from error
    verb, status = ("approve", "approved") if is_approved else ("deny", "denied")
    target = f"{approval.agent} {approval.tool} {approval.id}"
    await record_change(asked, verb, status, target)
    who, tool = approval.agent, approval.tool
    if is_approved:
        return asked.say("{who} may use {tool}, this once", who=who, tool=tool)
    return asked.say("{who} may not use {tool}", who=who, tool=tool)


VIEW = View(
    "overview",
    "Overview",
    load,
    every=2.0,
    actions={"approve": approve, "deny": deny},
)
