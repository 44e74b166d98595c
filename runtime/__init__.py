"""The kernel: actors, mailboxes, supervision, timers, durable storage, metrics.

Knows nothing of chat and never touches the network. Read `SEMANTICS.md` in this
folder for what callers may rely on.

The names below are what an actor and its tests need. They are loaded when they are
first used, because `callboard --version` imports this package and nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.actor import Actor
    from runtime.child import ChildSpec
    from runtime.keyed import KeyedConfig, KeyedSupervisor
    from runtime.mailbox import MailboxConfig
    from runtime.messages import Exit, Keyed, Terminated
    from runtime.metrics import Metrics
    from runtime.ref import ActorRef
    from runtime.reply import Reply
    from runtime.supervisor import Supervisor, SupervisorConfig
    from runtime.system import ActorSystem, SystemConfig, open_system
    from runtime.timers import Timer
    from runtime.watchdog import WatchdogConfig

__version__ = "0.1.0"

__all__ = [
    "Actor",
    "ActorRef",
    "ActorSystem",
    "ChildSpec",
    "Exit",
    "Keyed",
    "KeyedConfig",
    "KeyedSupervisor",
    "MailboxConfig",
    "Metrics",
    "Reply",
    "Supervisor",
    "SupervisorConfig",
    "SystemConfig",
    "Terminated",
    "Timer",
    "WatchdogConfig",
    "open_system",
]

HOMES = {
    "Actor": "actor",
    "ActorRef": "ref",
    "ActorSystem": "system",
    "ChildSpec": "child",
    "Exit": "messages",
    "Keyed": "messages",
    "KeyedConfig": "keyed",
    "KeyedSupervisor": "keyed",
    "MailboxConfig": "mailbox",
    "Metrics": "metrics",
    "Reply": "reply",
    "Supervisor": "supervisor",
    "SupervisorConfig": "supervisor",
    "SystemConfig": "system",
    "Terminated": "messages",
    "Timer": "timers",
    "WatchdogConfig": "watchdog",
    "open_system": "system",
}
"""Name → the module of this package that has it."""

if not TYPE_CHECKING:  # so that checkers see the names above and refuse others

    def __getattr__(name: str) -> object:
        """Load a public name."""
        home = HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'runtime' has no public name {name!r}")
        return getattr(import_module(f"runtime.{home}"), name)
