"""What a turn and the accounts say to each other about one call to a model."""

from __future__ import annotations

from typing import Literal

import msgspec

from actors.catalogue import Catalogue
from actors.errors import ModelFault
from actors.ledger import Spent
from actors.messages import Usage
from actors.ports import Model
from actors.rules.accounts import Backend, Offer
from actors.rules.budget import Who
from actors.rules.prices import Prices
from runtime.ref import ActorRef

Outcome = Literal["ok", "cancelled"] | ModelFault
"""How a call ended; `cancelled`: nobody waits for it any more, or it broke."""


class Reserve(msgspec.Struct, frozen=True, kw_only=True):
    """To the accounts, asked: a call is to be made; the answer is a `Ruling`."""

    turn: ActorRef
    """Who makes it; with its end the reservation is void."""

    run: str
    """The ledger row in which the call will stand."""

    who: Who
    model: str
    """Which of `[models.<name>]` is wanted."""

    otherwise: str = ""
    """Which instead, if the settings have that one no more: the agent's own."""

    needs_tools: bool = False
    needs_images: bool = False
    estimate: Usage = Usage()
    """What it may take, to be held back from the budgets."""

    tried: frozenset[Backend] = frozenset()
    """Not these: they were asked already in this round."""


class Unreserve(msgspec.Struct, frozen=True):
    """To the accounts: a turn has stopped waiting for their ruling."""

    turn: ActorRef
    """Makes one call at a time, so whatever is reserved for it is not wanted."""


class Reserved(msgspec.Struct, frozen=True):
    """The call may be made, by the settings of this moment."""

    number: int
    backend: Backend
    client: Model
    """Whom to ask; open until the call has ended or the turn is over."""

    offer: Offer
    prices: Prices

    def spent(self, usage: Usage, *, is_reckoned: bool = False) -> Spent:
        """Write down what the call took."""
        return Spent(
            provider=self.backend.model,
            model=self.offer.model,
            account=self.backend.account,
            usage=usage,
            cost=self.prices.cost(usage),
            prices=self.prices.version,
            is_reckoned=is_reckoned,
        )


class Later(msgspec.Struct, frozen=True):
    """No call may be made now."""

    seconds: float
    """Until one may; infinite if none will before the settings are mended."""

    is_held: bool = False
    """Whether it only waits for what calls under way will have cost."""


class OverBudget(msgspec.Struct, frozen=True):
    """No call may be made before the next period begins."""

    text: str
    """For the person who asked."""


Ruling = Reserved | Later | OverBudget


class CallEnded(msgspec.Struct, frozen=True, kw_only=True):
    """To the accounts: a call that was reserved is over."""

    number: int
    backend: Backend
    who: Who
    run: str
    outcome: Outcome
    spent: Spent | None = None
    """What it took, as far as the provider said."""

    retry_after: float | None = None
    """Seconds the provider asked to be left alone."""


class Recalled(msgspec.Struct, frozen=True):
    """To the accounts: a turn goes on where an earlier attempt at it was cut off.

    That one's ledger row was never written; this one's will tell of both.
    """

    was_run: str
    """The earlier attempt's row."""

    run: str
    who: Who
    spent: tuple[Spent, ...]
    """What the earlier attempt had spent."""


class ReplaceCatalogue(msgspec.Struct, frozen=True):
    """To the accounts, asked: the settings have changed; answered when they are in use.

    Calls under way end with the clients they have, which are closed after the last.
    """

    catalogue: Catalogue
    """Belongs to the accounts from now on: they close its clients."""

    renewed: frozenset[str] = frozenset()
    """Accounts that are others now, though their names stayed: what was learnt of them
    says nothing any more."""


class ListModels(msgspec.Struct, frozen=True):
    """To the accounts, asked: what can be chosen? The answer is a `ModelList`."""


class ListedModel(msgspec.Struct, frozen=True):
    """One model, for people."""

    name: str
    """Which of `[models.<name>]`."""

    model: str
    """The provider's name of it."""

    accounts: tuple[str, ...]


class ModelList(msgspec.Struct, frozen=True):
    """All models of the settings, in their order."""

    models: tuple[ListedModel, ...]
