"""Budgets of the settings, in the words of the domain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.rules.budget import Budget, Limit
from connectors.model_checks import find_zone
from runtime.errors import SettingsError

if TYPE_CHECKING:
    from datetime import tzinfo

    from actors.config import BudgetConfig
    from connectors.config import AppConfig


def as_budget(config: BudgetConfig) -> Budget:
    """Say what the domain must know of a budget."""
    return Budget(
        scope=config.scope,
        period=config.period,
        who=config.who,
        soft=Limit(config.soft_usd, config.soft_tokens),
        hard=Limit(config.hard_usd, config.hard_tokens),
        downgrade_to=config.downgrade_to,
    )


def zone_of(config: AppConfig) -> tzinfo:
    """Find where a budget's day begins.

    Raises:
        runtime.errors.SettingsError: this machine does not know the time zone.
    """
    zone = find_zone(config.ledger.time_zone)
    if zone is None:
        raise SettingsError(f"there is no time zone {config.ledger.time_zone!r}")
    return zone
