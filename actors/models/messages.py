"""Messages between turns and the accounts about one model call."""

from __future__ import annotations

from typing import Literal

import msgspec

from actors.errors import ModelFault
from actors.messages.inbound import Usage
from actors.messages.usage import Spent
from actors.models.budget import Spender
from actors.models.catalogue import Catalogue, Prices
from actors.models.pool import Backend, ModelOffer
from actors.ports import Model
from runtime.actor.ref import ActorRef

Outcome = Literal["ok", "cancelled"] | ModelFault
"""How a call ended; `cancelled`: nobody waits for it any more, or it broke."""


class Reserve(msgspec.Struct, frozen=True, kw_only=True):
    """To the accounts, asked: a call is to be made; answered by a `Ruling`."""

    turn: ActorRef
    """Who makes it; with its end the reservation is void."""

    who: Spender
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


class ReadCalls(msgspec.Struct, frozen=True):
    """To the accounts: other nodes have written to the ledger."""


class ReadCoolDowns(msgspec.Struct, frozen=True):
    """To the accounts: other nodes have been refused by a provider, or let in again."""


class CancelReserve(msgspec.Struct, frozen=True):
    """To the accounts: a turn no longer waits for an answer to its `Reserve`."""

    turn: ActorRef
    """Makes one call at a time, so whatever is reserved for it is not wanted."""


class Reserved(msgspec.Struct, frozen=True):
    """The call may be made, with the settings of this moment."""

    call: str
    """Id of the call, and of its row in the ledger."""

    backend: Backend
    client: Model
    """Whom to ask; open until the call has ended or the turn is over."""

    offer: ModelOffer
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


class CallLater(msgspec.Struct, frozen=True):
    """No account can take the call now."""

    seconds: float
    """Until one may; infinite if none will before the settings are mended."""

    is_held: bool = False
    """Whether it only waits for what calls under way will have cost."""

    kind: ModelFault | None = None
    why: str = ""
    """As in `NoBackend`."""


class OverBudget(msgspec.Struct, frozen=True):
    """A hard limit is reached; no call may be made before the next period begins."""

    text: str
    """For the person who asked."""


Ruling = Reserved | CallLater | OverBudget


class CallEnded(msgspec.Struct, frozen=True, kw_only=True):
    """To the accounts: a reserved call has ended."""

    call: str
    backend: Backend
    who: Spender
    outcome: Outcome
    spent: Spent | None = None
    """What it took, as far as the provider said."""

    retry_after: float | None = None
    """Seconds the provider asked to be left alone."""

    why: str = ""
    """What the provider said, for operators: in words that quote nobody."""


class ReplaceCatalogue(msgspec.Struct, frozen=True):
    """To the accounts, asked: use these settings; answered once they are in use.

    Calls under way end with the clients they have, which are closed after the last.
    """

    catalogue: Catalogue
    """Belongs to the accounts from now on: they close its clients."""

    renewed: frozenset[str] = frozenset()
    """Accounts that are others now, though their names stayed: what was learnt of them
    says nothing any more."""


class ListModels(msgspec.Struct, frozen=True):
    """To the accounts, asked: list the models; answered by a `ModelList`."""


class RefusedAccounts(msgspec.Struct, frozen=True):
    """To the accounts, asked: which did not take their keys?

    Answered by their names.
    """

    if_all: bool = False
    """Name none if any account may still answer."""


class BudgetsLeft(msgspec.Struct, frozen=True):
    """Asks the accounts: how much of each budget with a hard limit is left?

    Answered by `(scope, who, period, part)` of each: `part` is from 0 (used up) to 1,
    and that of whoever has the least left. Nothing while the ledger cannot be read.
    """


class OwnBudgets(msgspec.Struct, frozen=True):
    """Asks the accounts: how much of a person's own budgets is spent?

    Answered by a `Budget` and an `Amount` of each with a hard limit. Nothing while the
    ledger cannot be read.
    """

    user: str
    """`connector/sender id`."""


class ListedModel(msgspec.Struct, frozen=True):
    """One model, as people are shown it."""

    name: str
    """Which of `[models.<name>]`."""

    model: str
    """The provider's name of it."""

    accounts: tuple[str, ...]


class ModelList(msgspec.Struct, frozen=True):
    """All models of the settings, in their order."""

    models: tuple[ListedModel, ...]
    refused: tuple[str, ...] = ()
    """Accounts that did not take their keys when they were asked last."""
