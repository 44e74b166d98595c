"""Several models on several accounts, each of which fails to order."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from actors.messages.inbound import ModelRequest
from actors.models.budget import Budget
from actors.models.catalogue import Catalogue, Prices
from actors.models.pool import ModelOffer
from tests.fakes.company.company import Cast, FakeModel, Says, heard

PRICES = {"smart": Prices(100_000.0, 100_000.0, version="v1")}
"""A call of the fake takes five tokens: half a dollar."""


class Account(FakeModel):
    """An account whose answers name it; what is in `faults` is raised first.

    Args:
        name: of the account.
    """

    def __init__(self, name: str) -> None:
        super().__init__(self.talk_or_fail)
        self.name = name
        self.faults: deque[Exception | Says] = deque()
        self.is_down: Exception | None = None
        """Raised for every request while it is set."""

    def talk_or_fail(self, request: ModelRequest) -> Says:
        if self.is_down is not None:
            return Says(error=self.is_down)
        if self.faults:
            fault = self.faults.popleft()
            return fault if isinstance(fault, Says) else Says(error=fault)
        return Says(f"{request.model}@{self.name}: {heard(request)}", after=0.01)


@dataclass
class Pooled(Cast):
    """A company that has `smart` on two accounts, and `cheap` on a third."""

    fallbacks: tuple[str, ...] = ()
    larger: str = ""
    takes_tools: bool = True
    budgets: tuple[Budget, ...] = ()
    work: Account = field(default_factory=lambda: Account("work"))
    home: Account = field(default_factory=lambda: Account("home"))
    spare: Account = field(default_factory=lambda: Account("spare"))

    def catalogue(self) -> Catalogue:
        smart = ModelOffer(
            name="smart",
            model="smart-1",
            accounts=("work", "home"),
            fallbacks=self.fallbacks,
            larger=self.larger,
            takes_tools=self.takes_tools,
        )
        cheap = ModelOffer(name="cheap", model="cheap-1", accounts=("spare",))
        return Catalogue(
            offers={"smart": smart, "cheap": cheap},
            clients={each.name: each for each in (self.work, self.home, self.spare)},
            preferences={"work": 0, "home": 1},
            prices=PRICES,
            budgets=self.budgets,
        )

    def asked(self) -> tuple[int, int, int]:
        """Count the requests to each account."""
        everyone = (self.work, self.home, self.spare)
        counts = [len(each.requests) for each in everyone]
        return (counts[0], counts[1], counts[2])
