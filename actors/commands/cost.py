"""The command `/cost`: what the models have cost, from the ledger."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from actors.commands.context import CommandReply
from actors.journal.records import USAGE, UsageRecord

if TYPE_CHECKING:
    from actors.commands.context import CommandRequest

PAGE = 1000


class CostSum(msgspec.Struct):
    """Turns, tokens and dollars of several turns."""

    turns: int = 0
    tokens: int = 0
    cost: float = 0.0
    """US dollars."""

    def add(self, body: UsageRecord) -> None:
        """Count one turn more."""
        self.turns += 1
        self.tokens += body.input_tokens + body.output_tokens
        self.cost += body.cost


async def cost(asked: CommandRequest) -> CommandReply:
    """Show what somebody's own turns cost, and to owners what all did."""
    say = asked.say
    now = datetime.fromtimestamp(asked.services.clock.wall(), UTC)
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    month = day.replace(day=1)
    sums = await add_up(asked, month.timestamp(), day.timestamp())
    lines = [
        line(say("You, today: {cost} in {turns} turns, {tokens} tokens"), sums[0]),
        line(say("You, this month: {cost} in {turns} turns, {tokens} tokens"), sums[1]),
    ]
    if asked.is_owner:
        today = say("All, today: {cost} in {turns} turns, {tokens} tokens")
        whole = say("All, this month: {cost} in {turns} turns, {tokens} tokens")
        lines += [line(today, sums[2]), line(whole, sums[3])]
    return CommandReply("\n".join(lines))


def line(text: str, found: CostSum) -> str:
    """Write one sum."""
    cost_ = f"${found.cost:.4f}"
    return text.format(cost=cost_, turns=found.turns, tokens=found.tokens)


async def add_up(
    asked: CommandRequest, since: float, today: float
) -> tuple[CostSum, CostSum, CostSum, CostSum]:
    """Add up the ledger since some Unix seconds: one's own today and since, and all."""
    own_today, own, all_today, everything = CostSum(), CostSum(), CostSum(), CostSum()
    accounts = asked.person.accounts if asked.inbound.is_direct else (asked.account,)
    at, number = since, 0
    while True:
        rows = await asked.services.store.records_since(USAGE, at, number, PAGE)
        for row in rows:
            at, number = row.at, row.number
            body = msgspec.json.decode(row.body, type=UsageRecord)
            is_own = f"{body.connector}/{body.sender_id}" in accounts
            is_today = row.at >= today
            chosen = (
                (own, is_own),
                (own_today, is_own and is_today),
                (everything, True),
                (all_today, is_today),
            )
            for each, counts in chosen:
                if counts:
                    each.add(body)
        if len(rows) < PAGE:
            return own_today, own, all_today, everything
