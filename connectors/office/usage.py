"""What the models took, summed up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import records
from actors.ledger import Spent
from actors.messages import Usage
from actors.records import UsageRecord
from connectors.office.moments import when
from connectors.office.record import read_record

if TYPE_CHECKING:
    from collections.abc import Callable

    from connectors.office.record import Complain
    from runtime.rows import StoredRecord
    from runtime.sqlite_survey import Survey

    Name = Callable[[StoredRecord, UsageRecord], str]

NAMES: dict[str, Name] = {
    "agent": lambda _, body: body.agent,
    "sender": lambda _, body: f"{body.connector}/{body.sender_id}",
    "day": lambda row, _: when(row.at)[:10],
}
PARTS: dict[str, Callable[[Spent], str]] = {
    "model": lambda each: f"{each.provider}/{each.model}",
    "account": lambda each: each.account,
}
"""Of these, one turn may have used several."""

TOTAL = "all"


class Sum(msgspec.Struct):
    """What some turns took together."""

    name: str
    runs: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    """US dollars."""

    seconds: float = 0.0
    reckoned_tokens: int = 0
    """Of the tokens, those of calls that were cut off, or of which nobody told."""

    def add(self, body: UsageRecord) -> None:
        """Count one turn more."""
        self.runs += 1
        self.input_tokens += body.input_tokens
        self.output_tokens += body.output_tokens
        self.cost += body.cost
        self.seconds += body.seconds
        self.reckoned_tokens += sum(map(reckoned, body.spent))

    def add_part(self, body: UsageRecord, part: Spent) -> None:
        """Count a turn's calls to one model on one account, and all its time."""
        self.runs += 1
        self.input_tokens += part.usage.input_tokens
        self.output_tokens += part.usage.output_tokens
        self.cost += part.cost
        self.seconds += body.seconds
        self.reckoned_tokens += reckoned(part)


def reckoned(spent: Spent) -> int:
    """Give the tokens that are an estimate."""
    usage = spent.usage
    return usage.input_tokens + usage.output_tokens if spent.is_reckoned else 0


def sum_up(rows: Survey, by: str, since: float, complain: Complain) -> list[Sum]:
    """Sum up by name, in the order of the names; the last one is all together."""
    total = Sum(TOTAL)
    sums: dict[str, Sum] = {}
    for row in rows.recent(records.USAGE, since):
        body = read_record(row, UsageRecord, complain)
        if body is None:
            continue
        total.add(body)
        if by in NAMES:
            name = NAMES[by](row, body)
            sums.setdefault(name, Sum(name)).add(body)
        else:
            for part in parts_of(body):
                name = PARTS[by](part)
                sums.setdefault(name, Sum(name)).add_part(body, part)
    return [*(sums[key] for key in sorted(sums)), total]


def parts_of(body: UsageRecord) -> tuple[Spent, ...]:
    """Give what a turn spent by model and account; older rows have one part."""
    usage = Usage(body.input_tokens, body.output_tokens, body.cached_tokens)
    whole = Spent(
        provider=body.provider,
        model=body.model,
        account=body.provider,
        usage=usage,
        cost=body.cost,
    )
    return body.spent or (whole,)
