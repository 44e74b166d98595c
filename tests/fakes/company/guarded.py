"""A company at whose doors a test may stand guard."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from actors.config.access import AccessConfig, AgentAccessConfig
from actors.people.access import policy
from actors.rules.groups.access import agent_access
from actors.services import Services
from tests.fakes.company.desked import Desked
from tests.fakes.company.furnished import changed


@dataclass
class Guarded(Desked):
    """A cast whose platforms let in whom the settings say."""

    access: dict[str, AccessConfig] = field(default_factory=dict["str", "AccessConfig"])
    """By connector; one that is missing lets in everybody."""

    owners: tuple[str, ...] = ()
    rules: tuple[AgentAccessConfig, ...] = ()

    @property
    def services(self) -> Services:
        services = super().services
        owners = frozenset(self.owners)
        accounts = {
            name: replace(account, policy=policy(self.access[name], owners))
            if name in self.access
            else account
            for name, account in services.accounts.items()
        }
        return changed(
            services,
            accounts=accounts,
            owners=owners,
            approvers=owners.union(services.approvers),
            agent_access=agent_access(self.rules, owners),
        )
