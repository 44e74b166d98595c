"""What every actor of the domain is given: storage, time, ids, counts, limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from actors.account import Account
from actors.approval_board import ApprovalBoard
from actors.config import ApprovalConfig, AuditConfig, ToolCallConfig
from actors.redaction import Keep

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from actors.config import LimitsConfig, PermissionConfig, SessionConfig
    from actors.metrics import LineMetrics
    from actors.ports import MediaReader
    from runtime.clock import Clock
    from runtime.ids import IdSource
    from runtime.store import Store

UNKNOWN_ACCOUNT = Account()


@dataclass(frozen=True)
class Services:
    """Handles that actors share; each is itself safe to share on the kernel thread."""

    store: Store
    clock: Clock
    ids: IdSource
    metrics: LineMetrics
    limits: LimitsConfig
    sessions: SessionConfig
    audit: AuditConfig = field(default_factory=AuditConfig)
    accounts: Mapping[str, Account] = field(default_factory=dict[str, Account])
    """By the name of the connector."""

    owners: frozenset[str] = frozenset()
    """Who runs this company, each as `connector/sender_id`."""

    approvers: frozenset[str] = frozenset()
    """Who may approve any tool call, each as `connector/sender_id`: the owners, and
    whoever sits at this machine's terminal."""

    tool_calls: ToolCallConfig = field(default_factory=ToolCallConfig)
    approvals: ApprovalConfig = field(default_factory=ApprovalConfig)
    permissions: tuple[PermissionConfig, ...] = ()
    board: ApprovalBoard = field(default_factory=ApprovalBoard)
    """The calls that wait for somebody's leave, in all conversations."""

    receipt_key: bytes = b""
    """What receipts of tool calls are signed with; empty: none is made."""

    redact: Callable[[str], str] = str
    """Takes the values of secrets out of a text that is to be kept."""

    media: MediaReader | None = None
    """Reads attachments; None: there is nobody to read them."""

    @property
    def keep(self) -> Keep:
        """Say what the audit keeps."""
        return Keep(self.redact, self.audit.texts)

    def account(self, connector: str) -> Account:
        """Tell what is known of a connector; one that is gone has no abilities."""
        return self.accounts.get(connector, UNKNOWN_ACCOUNT)
