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
    from runtime.actor.actor import Actor
    from runtime.actor.mailbox import MailboxConfig
    from runtime.actor.messages import Exit, Keyed, Terminated
    from runtime.actor.ref import ActorRef
    from runtime.actor.reply import Reply
    from runtime.actor.timers import Timer
    from runtime.supervision.child import ChildSpec
    from runtime.supervision.keyed import KeyedConfig, KeyedSupervisor
    from runtime.supervision.supervisor import Supervisor, SupervisorConfig
    from runtime.supervision.watchdog import WatchdogConfig
    from runtime.system import ActorSystem, SystemConfig, open_system
    from runtime.telemetry.metrics import Metrics

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
    "Actor": "actor.actor",
    "ActorRef": "actor.ref",
    "ActorSystem": "system",
    "ChildSpec": "supervision.child",
    "Exit": "actor.messages",
    "Keyed": "actor.messages",
    "KeyedConfig": "supervision.keyed",
    "KeyedSupervisor": "supervision.keyed",
    "MailboxConfig": "actor.mailbox",
    "Metrics": "telemetry.metrics",
    "Reply": "actor.reply",
    "Supervisor": "supervision.supervisor",
    "SupervisorConfig": "supervision.supervisor",
    "SystemConfig": "system",
    "Terminated": "actor.messages",
    "Timer": "actor.timers",
    "WatchdogConfig": "supervision.watchdog",
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
