"""Messages: those that wait or failed, and the life of each; retry, drop and stop."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec
import trio

from actors import names
from actors.journal.records import USAGE, UsageRecord
from actors.messages.inbound import DelegationChain, Inbound
from actors.messages.keys import session_key
from actors.protocol import StopDelegated
from connectors.admin.display import STATES, QueueJob, read_record
from connectors.admin.queue import (
    USUAL,
    JobPage,
    WholeMessage,
    collect,
    drop_one,
    read_jobs,
    read_unsent,
    read_waiting,
    retry_one,
)
from connectors.web.page.views.base import (
    Look,
    Refusal,
    View,
    ViewRequest,
    ViewValues,
    act_at,
    change_by_hand,
    conversation_label,
    names_of,
    number_of,
    place_text,
    reading,
    record_change,
)
from connectors.web.page.words import REASONS, moment_of
from runtime.actor.messages import Keyed
from runtime.errors import KernelError
from runtime.store.database import Database, Inspection, RepairResult
from runtime.store.rows import StoredMessage, decoded

MOST_LISTED = 50

MOST_LOOKED_AT = 2_000
"""Messages that are read for one page of a search."""


# --- the list ----------------------------------------


def read_list(look: Look) -> ViewValues:
    """List messages, the newest first, and unsent deliveries."""
    query = look.query
    state, find = query.get("state", ""), query.get("find", "").strip()
    is_all = state == "all" or (bool(find) and state not in STATES)
    wanted = (state,) if state in STATES else tuple(STATES) if is_all else USUAL
    past = number_of(query.get("past", ""))
    with look.database.inspect() as store:
        found = searched(look, store, wanted, past, find)
        waiting = look.paced("waiting", lambda: read_waiting(store))
        unsent = read_unsent(store, MOST_LISTED)
    rows = [
        {
            "job": job,
            "place": place_text(job.connector, job.chat, job.thread),
            "age": look.now - row.at,
            "due_in": row.due_at - look.now,
            "why": REASONS.get(job.reason, job.reason),
            **may(job, is_put_off=row.due_at > look.now),
        }
        for job, row in zip(found.jobs, found.rows, strict=True)
    ]
    counts = {
        name: sum(waiting.inbox.get(each, 0) for each in states)
        for name, states in STATES.items()
    }
    return {
        "id": "",
        "rows": rows,
        "next": found.next,
        "past": past,
        "state": state if state in STATES else "all" if is_all else "",
        "states": list(STATES),
        "counts": counts,
        "find": find,
        "unsent": unsent,
    }


def searched(
    look: Look, rows: Inspection, wanted: tuple[str, ...], past: int, find: str
) -> JobPage:
    """Read a page of messages; with words to find, of those that have them."""
    read = partial(read_jobs, rows, wanted, MOST_LISTED, look.complain)
    page = read(past, with_short=False)
    if not find:
        return page
    jobs, stored = list[QueueJob](), list[StoredMessage]()
    looked_at = 0
    while True:
        for job, row in zip(page.jobs, page.rows, strict=True):
            words = f"{job.id} {job.text} {job.sender_name} {job.agent} {job.chat}"
            if find.casefold() in words.casefold():
                jobs.append(job)
                stored.append(row)
        looked_at += len(page.jobs)
        if not page.next or len(jobs) >= MOST_LISTED or looked_at >= MOST_LOOKED_AT:
            break
        page = read(page.next, with_short=False)
    return msgspec.structs.replace(page, jobs=jobs, rows=tuple(stored), short={})


def may(job: QueueJob, *, is_put_off: bool) -> dict[str, bool]:
    """Say what can be done about a message, as `runtime.store.database` decides it."""
    waits = job.status == "pending"
    has_failed = job.state == "dead"  # its writer was not told to ask anew
    return {
        "may_retry": has_failed or (waits and is_put_off),
        "may_drop": has_failed or waits,
        "may_stop": job.status == "running" or (waits and is_put_off),
    }


# --- the life of one message ----------------------------------------


OVER = "Over: {state}"


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened to a message."""

    at: float
    """Unix seconds."""

    tone: str
    text: str
    """English, with places for `values`."""

    values: dict[str, object] = {}
    words: str = ""
    """What was said, or what a tool gave."""

    note: str = ""
    calls: tuple[dict[str, str], ...] = ()


def read_one(look: Look) -> ViewValues:
    """Read one message: what happened to it, with its deliveries."""
    name = look.query["id"].partition(":")[0]
    key = look.inside.services.receipt_key
    with look.database.inspect() as rows:

        def find(end: str) -> tuple[str, ...]:
            return look.paced(f"streams {end}", lambda: rows.streams_ending(end))

        whole = collect(rows, name, key, look.complain, find)
        runs = list(runs_of(look, rows, whole.message))
        label = conversation_label(whole.conversation, names_of(rows))
    it = whole.message
    is_put_off = it.due_at is not None and moment_of(it.due_at).timestamp() > look.now
    life = [*own_moments(whole), *(x for each in runs for x in run_moments(each))]
    life += [*step_moments(whole), *delivery_moments(whole)]
    # What is stored at one moment stands in the order in which it came about.
    life.sort(key=lambda each: (each.at, each.text == OVER))
    return {
        "id": name,
        "whole": whole,
        "label": label,
        "place": place_text(it.connector, it.chat, it.thread),
        "why": REASONS.get(it.reason, it.reason),
        "life": life,
        "bars": bars(whole, look.now),
        "tokens": sum(each.input_tokens + each.output_tokens for _, each in runs),
        "cost": sum(each.cost for _, each in runs),
        "gone": [each.id for each in whole.deliveries if each.is_gone],
        **may(it, is_put_off=is_put_off),
    }


def runs_of(
    look: Look, rows: Inspection, job: QueueJob
) -> Iterator[tuple[float, UsageRecord]]:
    """Give what each attempt at a message used, and when it was stored."""
    for attempt in range(1, min(job.attempts, 20) + 1):
        row = rows.record(USAGE, f"{job.id}#{attempt}")
        body = None if row is None else read_record(row, UsageRecord, look.complain)
        if row is not None and body is not None:
            yield row.at, body


def seconds_of(at: str | None) -> float:
    """Read a time; 0: there is none."""
    return moment_of(at).timestamp() if at else 0.0


def own_moments(whole: WholeMessage) -> Iterator[Moment]:
    """Give what the message's own row says."""
    it = whole.message
    received, begun = seconds_of(it.received_at), seconds_of(it.started_at)
    who = it.sender_name or it.sender_id
    if received:
        yield Moment(
            at=received,
            tone="busy",
            text="{who} asked on {place}",
            values={"who": who or "?", "place": it.connector},
            words=it.text,
        )
    if begun:
        yield Moment(
            at=begun,
            tone="soft",
            text="Its turn came after {span}",
            values={"seconds": max(0.0, begun - received)},
        )
    settled = seconds_of(it.settled_at)
    if settled:
        yield Moment(
            at=settled,
            tone="bad" if it.status == "failed" else "good",
            text=OVER,
            values={"status": it.status},
            note="" if it.reason == "ok" else REASONS.get(it.reason, it.reason),
        )
    elif it.due_at and it.status == "pending":
        yield Moment(
            at=seconds_of(it.due_at),
            tone="warn",
            text="To be tried again then",
            note=REASONS.get(it.reason, it.reason),
        )


def run_moments(run: tuple[float, UsageRecord]) -> Iterator[Moment]:
    """Describe one attempt: its prompt, its model, time, tokens and cost."""
    at, it = run
    has_failed = it.status not in {"ok", "cancelled", "stopped"}
    if it.rounds:
        yield Moment(
            at=at - it.seconds + it.prepared,
            tone="soft",
            text="Prompt put together: memories, files and what was said, in {span}",
            values={"seconds": it.prepared},
        )
    yield Moment(
        at=at - 0.001,  # before what is stored at the same moment
        tone="bad" if has_failed else "good",
        text="Attempt {attempt} with {model}: {tokens} tokens, {cost}",
        values={
            "attempt": it.attempt,
            "model": f"{it.provider}/{it.model}" if it.model else it.provider,
            "tokens": it.input_tokens + it.output_tokens,
            "dollars": it.cost,
            "seconds": it.seconds,
            "rounds": it.rounds,
        },
        note=REASONS.get(it.status, it.status) if has_failed else "",
    )


STEPS = {
    "round": ("soft", "The model was asked"),
    "tool": ("soft", "Tool {who}"),
    "leave": ("warn", "Approval for {who}"),
}


def step_moments(whole: WholeMessage) -> Iterator[Moment]:
    """Give the recorded steps of its turn."""
    for each in whole.steps:
        tone, text = STEPS.get(each.what, ("soft", "{state}"))
        usage = each.usage
        values: dict[str, object] = {"who": each.who, "status": each.what}
        if usage is not None:
            values["tokens"] = usage.input_tokens + usage.output_tokens
        yield Moment(
            at=seconds_of(each.at),
            tone="bad" if each.reason == "error" else tone,
            text=text,
            values=values,
            words=each.text,
            note={"bad": "its receipt is not genuine"}.get(each.proof, ""),
            calls=tuple(
                {"name": call.name, "arguments": call.arguments} for call in each.calls
            ),
        )


def delivery_moments(whole: WholeMessage) -> Iterator[Moment]:
    """Give when its answers were stored, and sent."""
    for each in whole.deliveries:
        stored, settled = seconds_of(each.enqueued_at), seconds_of(each.settled_at)
        yield Moment(at=stored, tone="soft", text="Answer stored", words=each.text)
        if settled:
            yield Moment(
                at=settled,
                tone={"sent": "good", "dead": "bad"}.get(each.state, "warn"),
                text="Answer: {state}",
                values={"status": each.state, "attempts": each.attempts},
                note="" if each.state == "sent" else each.receipt,
            )


def bars(whole: WholeMessage, now: float) -> dict[str, float]:
    """Give the seconds a message waited, was worked on, and was on its way."""
    it = whole.message
    received = seconds_of(it.received_at)
    settled = seconds_of(it.settled_at)
    begun = seconds_of(it.started_at) or (received if settled else now)
    ended = settled or now
    sent = max((seconds_of(x.settled_at) for x in whole.deliveries), default=0.0)
    wait = max(0.0, min(begun, ended) - received)
    work = max(0.0, ended - max(begun, received))
    send = max(0.0, sent - ended) if settled else 0.0
    return {"wait": wait, "work": work, "send": send, "whole": wait + work + send}


# --- changes ----------------------------------------


async def retry(asked: ViewRequest) -> str:
    """Retry a message or a delivery."""
    return await change_by_hand(asked, partial(retried, asked), "retry", "retried")


async def drop(asked: ViewRequest) -> str:
    """Drop a message or a delivery."""
    return await change_by_hand(asked, partial(dropped, asked), "drop", "dropped")


def retried(asked: ViewRequest, database: Database) -> RepairResult:
    """Retry it, as `callboard queue retry` does."""
    now = asked.inside.services.clock.wall()
    return retry_one(database, asked.form.get("id", ""), now)


def dropped(asked: ViewRequest, database: Database) -> RepairResult:
    """Drop it, as `callboard queue drop` does."""
    now = asked.inside.services.clock.wall()
    return drop_one(database, asked.form.get("id", ""), now)


async def stop(asked: ViewRequest) -> str:
    """Stop what a message causes, as `/stop all` in its chat would, at any node.

    Only what comes from this one message ends, whichever agents work on it.
    """
    circle = asked.inside.nodes
    others = [] if circle is None else circle.others()
    try:
        return await stop_here(asked)
    except Refusal:
        if not others:
            raise
    return await act_at(asked, "queue/stop", others)


async def stop_here(asked: ViewRequest) -> str:
    """Stop what a message causes, if its chat is worked on in this process."""
    inside = asked.inside
    services, target = inside.services, asked.form.get("id", "")

    def read() -> Inbound | None:
        with inside.database.inspect() as rows:
            return decoded(rows.message(target), Inbound)

    try:
        inbound = await trio.to_thread.run_sync(
            read, abandon_on_cancel=True, limiter=inside.threads
        )
    except KernelError as error:
        raise Refusal(services.redact(str(error))) from error
    if inbound is None:
        raise Refusal(asked.say("another release wrote this message; drop it instead"))
    address = inbound.address
    is_here = services.duties.has_chat(address.connector, address.chat)
    if not is_here or not stopped_at(asked, inbound):
        raise Refusal(asked.say("no agent works on it now"))
    await record_change(asked, "stop", "stopped", target)
    return asked.say("message {id} is being stopped", id=target)


def stopped_at(asked: ViewRequest, inbound: Inbound) -> int:
    """Tell the conversations of a message's chat to stop; count those told."""
    inside = asked.inside
    services = inside.services
    by = msgspec.structs.replace(
        inbound,
        id=services.ids.new(),
        correlation_id=services.ids.new(),
        text="/stop all",
        chain=DelegationChain(),
    )
    stop = StopDelegated(by, "", correlation_id=inbound.correlation_id, is_all=True)
    told, scope = 0, services.sessions.session_scope
    for name in {
        each.name for each in inside.system.actors() if is_sessions(each.name)
    }:
        agent = name.removeprefix(f"{names.AGENTS}/").removesuffix("/sessions")
        ref = inside.system.find(name)
        if ref is not None:
            key = session_key(inbound, agent, scope).text
            ref.tell(Keyed(key, stop, may_wake=False))
            told += 1
    return told


def is_sessions(name: str) -> bool:
    """Whether an actor is the supervisor of an agent's conversations."""
    return name.startswith(f"{names.AGENTS}/") and name.endswith("/sessions")


VIEW = View(
    "queue",
    "Messages",
    reading(read_list, read_one),
    every=3.0,
    actions={"retry": retry, "drop": drop, "stop": stop},
)
