"""Budgets per agent, person, connector and in all, for each day or month.

Pure. A call may begin while less than the hard limit is spent. What its kind may cost
is held back until it is over, so that many at once do not all count on the same rest:
together they overshoot by no more than the calls under way.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

Scope = Literal["all", "agent", "connector", "user"]
Period = Literal["day", "month"]

# Chosen: people whose spending is kept apart in one budget; all others share one sum,
# so that they spend too little rather than too much.
MOST_KEYS = 50_000
OTHERS = "(others)"


class Amount(msgspec.Struct, frozen=True):
    """Tokens and dollars that were spent."""

    usd: float = 0.0
    tokens: int = 0
    """Read and written."""

    def __add__(self, other: Amount) -> Amount:
        """Add up two amounts."""
        return Amount(self.usd + other.usd, self.tokens + other.tokens)

    def __sub__(self, other: Amount) -> Amount:
        """Take one amount from another."""
        return Amount(self.usd - other.usd, self.tokens - other.tokens)


NOTHING = Amount()


class Limit(msgspec.Struct, frozen=True):
    """A limit in tokens, in dollars, or both; an empty one is never reached."""

    usd: float | None = None
    tokens: int | None = None

    def used_by(self, amount: Amount) -> float:
        """Give the part of it that an amount uses up; more than 1 is above it."""
        parts = ((amount.usd, self.usd), (amount.tokens, self.tokens))
        used = (
            part / most if most else 1.0 for part, most in parts if most is not None
        )
        return max(used, default=0.0)

    def is_reached(self, amount: Amount) -> bool:
        """Tell whether an amount uses it up."""
        over_usd = self.usd is not None and amount.usd >= self.usd
        return over_usd or (self.tokens is not None and amount.tokens >= self.tokens)


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """One budget of the settings: whose spending it limits, and for how long."""

    scope: Scope
    period: Period
    who: str = "*"
    """Which agents, people or connectors; `*` stands for anything. Each has a sum of
    its own."""

    soft: Limit = Limit()
    hard: Limit = Limit()
    downgrade_to: str = ""
    """The model to ask once the soft limit is reached; empty: only warn."""


class Spender(msgspec.Struct, frozen=True):
    """The agent and the person whose budgets a call counts against."""

    agent: str
    user: str
    """`connector/sender id`; the id is empty if it is spent for a whole group."""


class SoftLimitReached(msgspec.Struct, frozen=True):
    """A soft limit that has been reached: people are warned, models may change."""

    budget: Budget
    key: str
    """Whose sum."""

    period: tuple[int, ...]
    """In which year, month and perhaps day."""


class BudgetCheck(msgspec.Struct, frozen=True):
    """Whether a call may begin, and what the budgets say of it."""

    stop: Budget | None = None
    """The budget whose hard limit is used up."""

    until: float = 0.0
    """With `stop`: when its next period begins, in Unix seconds."""

    is_held: bool = False
    """Whether it would be used up if what is held back were spent: ask again soon."""

    downgrade_to: str = ""
    """The model to ask instead; empty: the one that is wanted."""

    softened: tuple[SoftLimitReached, ...] = ()


class BudgetUsage:
    """What was spent under one budget, in the present period and in later ones.

    Later ones have begun if the clock was ahead; they keep to their limits when they
    come.
    """

    __slots__ = ("_sums", "budget", "held", "period")

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.period: tuple[int, ...] = ()
        """The present one; of what was before nothing is known."""

        self._sums: dict[tuple[int, ...], dict[str, Amount]] = {}
        self.held: dict[str, Amount] = {}

    @property
    def spent(self) -> dict[str, Amount]:
        """What each agent, person or connector has spent in the present period."""
        return self._sums.setdefault(self.period, {})

    def enter(self, who: Spender, amount: Amount, period: tuple[int, ...]) -> None:
        """Count what was spent in a period."""
        spent = self._sums.setdefault(period, {})
        key = self.key(who, spent)
        if key is not None and period >= self.period:
            spent[key] = spent.get(key, NOTHING) + amount

    def key(self, who: Spender, spent: dict[str, Amount]) -> str | None:
        """Name the sum that this is part of; None: the budget does not concern it."""
        budget = self.budget
        if budget.scope == "all":
            return "all"
        connector, _, sender = who.user.partition("/")
        user = who.user if sender else ""  # what a group's upkeep costs is no person's
        name = {"agent": who.agent, "connector": connector, "user": user}[budget.scope]
        if not name or not fnmatchcase(name, budget.who):
            return None
        is_full = len(spent) >= MOST_KEYS and name not in spent
        return OTHERS if is_full else name

    def turn_to(self, period: tuple[int, ...]) -> None:
        """Go on to a later period, and forget what was before."""
        if period > self.period:
            self.period = period
            self._sums = {at: sums for at, sums in self._sums.items() if at >= period}

    def begin(self, period: tuple[int, ...]) -> None:
        """Begin with nothing spent, perhaps in an earlier period."""
        self.period = period
        self._sums.clear()


class Budgets:
    """All budgets, and what was spent under each."""

    def __init__(self, budgets: tuple[Budget, ...], zone: tzinfo) -> None:
        self._zone = zone
        self._sums = [BudgetUsage(each) for each in budgets]
        self._holds: dict[str, list[tuple[BudgetUsage, str, Amount]]] = {}

    def begin(self, now: float) -> float:
        """Begin with nothing spent; what is held back stays so.

        Args:
            now: Unix seconds.

        Returns:
            Since when all that was spent is to be entered.
        """
        for sums in self._sums:
            sums.begin(self._period(sums.budget, now))
        return self.since(now)

    def knows(self, now: float) -> bool:
        """Tell whether no period that is under way has been forgotten."""
        return not [x for x in self._sums if self._period(x.budget, now) < x.period]

    def enter(self, who: Spender, amount: Amount, at: float) -> None:
        """Count what was spent.

        Args:
            at: when, in Unix seconds; of an earlier period it is left out.
        """
        for sums in self._sums:
            sums.enter(who, amount, self._period(sums.budget, at))

    def hold(self, call: str, who: Spender, amount: Amount) -> None:
        """Hold back what a call may cost, until `free`."""
        held: list[tuple[BudgetUsage, str, Amount]] = []
        for sums in self._sums:
            key = sums.key(who, sums.spent)
            if key is not None:
                sums.held[key] = sums.held.get(key, NOTHING) + amount
                held.append((sums, key, amount))
        self._holds[call] = held

    def free(self, call: str) -> None:
        """Hold nothing back any more for a call; nothing happens the second time."""
        for sums, key, amount in self._holds.pop(call, ()):
            left = sums.held.get(key, NOTHING) - amount
            if left.tokens > 0 or left.usd > 1e-12:
                sums.held[key] = left
            else:
                sums.held.pop(key, None)

    def verdict(self, who: Spender, now: float) -> BudgetCheck:
        """Say whether a call may begin, and which model it should ask.

        Args:
            now: Unix seconds.
        """
        is_held = False
        softened: list[SoftLimitReached] = []
        for sums in self._sums:
            budget = sums.budget
            sums.turn_to(self._period(budget, now))
            key = sums.key(who, sums.spent)
            if key is None:
                continue
            spent = sums.spent.get(key, NOTHING)
            with_held = spent + sums.held.get(key, NOTHING)
            if budget.hard.is_reached(spent):
                return BudgetCheck(stop=budget, until=self._next(budget, now))
            is_held = is_held or budget.hard.is_reached(with_held)
            if budget.soft.is_reached(with_held):
                softened.append(SoftLimitReached(budget, key, sums.period))
        named = [each.budget.downgrade_to for each in softened]
        return BudgetCheck(
            is_held=is_held,
            downgrade_to=next(filter(None, named), ""),
            softened=tuple(softened),
        )

    def spent(self, now: float) -> Iterator[tuple[Budget, str, Amount]]:
        """Give what was spent under each budget, for all who spent something."""
        for sums in self._sums:
            sums.turn_to(self._period(sums.budget, now))
            for key in sorted(sums.spent):
                yield sums.budget, key, sums.spent[key]

    def left(self, now: float) -> Iterator[tuple[Budget, float]]:
        """Give the part of each hard limit that is left to the owner with the least.

        Args:
            now: Unix seconds.

        Returns:
            Budgets with a hard limit, each with a number from 0 (used up) to 1.
        """
        for sums in self._sums:
            hard = sums.budget.hard
            if hard == Limit():
                continue
            sums.turn_to(self._period(sums.budget, now))
            used = (hard.used_by(each) for each in sums.spent.values())
            yield sums.budget, max(0.0, 1.0 - max(used, default=0.0))

    def own(self, user: str, now: float) -> Iterator[tuple[Budget, Amount]]:
        """Give the budgets of a person that have a hard limit, and what is spent.

        Args:
            user: `connector/sender id`.
            now: Unix seconds.
        """
        for sums in self._sums:
            if sums.budget.scope != "user" or sums.budget.hard == Limit():
                continue
            sums.turn_to(self._period(sums.budget, now))
            key = sums.key(Spender("", user), sums.spent)
            if key is not None:
                yield sums.budget, sums.spent.get(key, NOTHING)

    def since(self, now: float) -> float:
        """Give the beginning of the longest period that is under way.

        Args:
            now: Unix seconds.
        """
        starts = [
            self._start(self._period(sums.budget, now), now) for sums in self._sums
        ]
        return min(starts, default=now)

    def _period(self, budget: Budget, at: float) -> tuple[int, ...]:
        day = datetime.fromtimestamp(at, self._zone)
        whole = (day.year, day.month, day.day)
        return whole if budget.period == "day" else whole[:2]

    def _start(self, period: tuple[int, ...], now: float) -> float:
        year, month, day = (*period, 1)[:3]
        start = datetime(year, month, day, tzinfo=self._zone).timestamp()
        return min(start, now)

    def _next(self, budget: Budget, now: float) -> float:
        today = datetime.fromtimestamp(now, self._zone)
        first = today.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
        if budget.period == "month":
            first = first.replace(day=1) + timedelta(days=32)
            return first.replace(day=1).timestamp()
        return (first + timedelta(days=1)).timestamp()


def refusal(budget: Budget, until: float, zone: tzinfo) -> str:
    """Tell a person that a budget is used up.

    Args:
        until: Unix seconds at which its next period begins.
        zone: in which that time is written.
    """
    named = {"user": "Your budget", "agent": "My budget"}
    whose = named.get(budget.scope, "The budget")
    period = "today" if budget.period == "day" else "this month"
    then = datetime.fromtimestamp(until, zone).strftime("%Y-%m-%d %H:%M %Z")
    return (
        f"\N{WARNING SIGN}\N{VARIATION SELECTOR-16} {whose} for {period}"
        f" is used up. Please ask again after {then}."
    )
