"""What every actor of the domain is given: storage, time, ids, counts, limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actors.config import LimitsConfig, SessionConfig
    from actors.metrics import LineMetrics
    from runtime.clock import Clock
    from runtime.ids import IdSource
    from runtime.store import Store


@dataclass(frozen=True)
class Services:
    """Handles that actors share; each is itself safe to share on the kernel thread."""

    store: Store
    clock: Clock
    ids: IdSource
    metrics: LineMetrics
    limits: LimitsConfig
    sessions: SessionConfig
