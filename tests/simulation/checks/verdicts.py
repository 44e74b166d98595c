"""What must hold at the end of a run, when the faults are over and all is at rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sized

from actors.messages.deliveries import Delivery, Owed
from actors.messages.state import outcome_of
from runtime.actor.kernel import Kernel
from runtime.store.rows import Counts
from runtime.supervision.keyed import KeyedSupervisor
from tests.simulation.checks.checkers import Checkers
from tests.simulation.checks.ledger import RECEIVED, SETTLED
from tests.simulation.edges.counting import CountingMetrics
from tests.simulation.trace import Trace

# Reasons for saying nothing: words in a group that were for nobody here.
UNSAID = ("dropped", "not_addressed")


def open_rows(counts: Counts) -> int:
    """Count rows that have no terminal state."""
    inbox = sum(n for state, n in counts.inbox.items() if str(state) not in SETTLED)
    outbox = sum(n for state, n in counts.outbox.items() if str(state) not in RECEIVED)
    return inbox + outbox


def judge_rows(checkers: Checkers, counts: Counts, trace: Trace) -> None:
    """Judge I1, I5 and I12 by what was committed."""
    ledger = checkers.ledger
    for connector, platform_id in sorted(checkers.acked):
        if (connector, platform_id) not in ledger.by_platform_id:
            trace.violate("I1", f"{platform_id} was acknowledged and lost", platform_id)
    _judge_ends(checkers, trace)
    by_state = {str(state): rows for state, rows in counts.inbox.items() if rows}
    if by_state != ledger.inbox():
        trace.violate("I12", f"the store counts {by_state}, not {ledger.inbox()}")
    _judge_answers(checkers, trace)
    checkers.rooms.judge()


def _judge_ends(checkers: Checkers, trace: Trace) -> None:
    """Judge that each row ended once, and was shown if it says so."""
    ledger = checkers.ledger
    for inbox_id, message in ledger.messages.items():
        if len(message.ends) != 1:
            trace.violate("I1", f"{inbox_id} ended as {message.ends}", inbox_id)
    for delivery_id, said in ledger.said.items():
        if len(said.receipts) != 1:
            trace.violate("I1", f"{delivery_id} has {said.receipts}", delivery_id)
        elif said.delivery.kind == "silence":
            continue  # only platforms that count answers hear of it
        elif said.receipts == ["sent"] and delivery_id not in checkers.showings:
            trace.violate("I1", f"{delivery_id} was sent, not shown", delivery_id)


def _judge_answers(checkers: Checkers, trace: Trace) -> None:
    """Judge that each person was told, and told when no more is to come."""
    ledger = checkers.ledger
    exchanges: dict[str, list[Delivery]] = {}
    for said in ledger.said.values():
        exchanges.setdefault(said.delivery.correlation_id, []).append(said.delivery)
    for inbox_id, message in ledger.messages.items():
        inbound = message.inbound
        is_own = not inbound.chain.agents and inbox_id == inbound.correlation_id
        if not is_own or UNSAID in message.ends or inbox_id in ledger.by_hand:
            continue
        deliveries = exchanges.get(inbox_id, [])
        if not deliveries:
            trace.violate("I5", f"{inbox_id} ended in silence", inbox_id)
            continue
        owed = Owed()
        is_over = [owed.count(each) for each in deliveries]
        if not is_over[-1]:
            trace.violate("I5", f"{inbox_id} is owed answers for ever", inbox_id)
        elif any(is_over[:-1]):
            late = deliveries[is_over.index(True) + 1 :]
            # Whom a message in a group is for is decided anew after a crash, and may
            # come out otherwise by then: by whom was answered, by what a model says.
            may_differ = not inbound.is_direct and checkers.cut_at >= message.at
            is_copied = may_differ and not any(each.is_root for each in late)
            blame = trace.tolerate if is_copied else trace.violate
            blame("I5", f"{inbox_id} got more answers than said", inbox_id)


def judge_metrics(
    before: Counter[tuple[str, str]],
    checkers: Checkers,
    metrics: CountingMetrics,
    trace: Trace,
    *,
    is_exact: bool,
) -> None:
    """Judge I12 by what a life counted and what was committed in it.

    Args:
        before: what had been settled when the life began, by connector and state.
        checkers: know what has been by now.
        metrics: of that life.
        trace: where violations go.
        is_exact: whether nothing struck in it; else it may have counted less.
    """
    settled = ended(checkers) - before
    values = metrics.counters["callboard_messages"].values
    for key in sorted({*settled, *(k for k in values if k[1] in {*SETTLED, "failed"})}):
        counted, stored = int(values.get(key, 0)), settled[key[0], key[1]]
        if counted > stored or (is_exact and counted < stored):
            text = f"{key}: metrics say {counted}, rows {stored}"
            trace.violate("I12", text)


def ended(checkers: Checkers) -> Counter[tuple[str, str]]:
    """Count what was settled so far, by connector and state."""
    return Counter(
        (message.inbound.address.connector, outcome_of(state, reason))
        for message in checkers.ledger.messages.values()
        for state, reason in (*message.ended_before, *message.ends[:1])
    )


Sizes = dict[str, dict[str, int]]
"""By actor: how many things each of its attributes holds; empty: it is down."""


def sizes(kernel: Kernel, *, at_start: bool = False) -> Sizes:
    """Tell how much each living actor keeps, and how many timers there are.

    Args:
        kernel: knows them all.
        at_start: leave out those that messages woke meanwhile.
    """
    found: Sizes = {"timers": {"": len(kernel.timers)}}
    for name, cell in kernel.names.items():
        by_key = cell.parent and cell.parent.actor_class is KeyedSupervisor
        if not (by_key and at_start):
            found[name] = _kept(vars(cell.actor)) if cell.actor else {}
    return found


def _kept(attributes: dict[str, object]) -> dict[str, int]:
    kept = {"is up": 1}
    for name, value in attributes.items():
        is_ring = getattr(value, "maxlen", None) is not None
        if isinstance(value, Sized) and not is_ring:
            kept[name] = len(value)
    return kept


def judge_growth(
    before: Sizes, after: Sizes, blame: Callable[[str, str], object]
) -> None:
    """Judge I6: compare what is kept at rest with what was kept at the start."""
    for actor in sorted({*before, *after}):
        if actor not in before:
            blame("I6", f"{actor} is still there")
        elif not after.get(actor):
            blame("I6", f"{actor} is gone")
        elif before[actor]:
            for name, size in after[actor].items():
                first = before[actor].get(name, 0)
                if size > first:
                    text = f"{actor}.{name}: {first} at the start, {size} at rest"
                    blame("I6", text)
