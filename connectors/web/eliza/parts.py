"""What the routes of the API are made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.ingress import RefusedAttempt
    from connectors.bridge import Bridge
    from connectors.web.backstage import Backstage
    from connectors.web.eliza.awaiting import Awaiting
    from connectors.web.eliza.channels import Channels
    from connectors.web.eliza.employing import Employing
    from connectors.web.eliza.figures import WebFigures
    from connectors.web.eliza.forgetting import Forgetting
    from connectors.web.eliza.jobs import Jobs
    from connectors.web.eliza.keys import Keys
    from connectors.web.eliza.log_ring import LogRing
    from connectors.web.eliza.memories import Memories
    from connectors.web.eliza.runs import Runs
    from connectors.web.eliza.sessions import Sessions
    from connectors.web.eliza.speech import Speech
    from connectors.web.eliza.telling import Tell
    from connectors.web.eliza.uploads import Uploads
    from connectors.web.server import HttpSettings
    from connectors.web_config import WebConfig
    from runtime.clock import Clock


@dataclass(frozen=True)
class Parts:
    """All of it; what is asked on the kernel's side only is said there."""

    config: WebConfig
    settings: HttpSettings
    clock: Clock
    bridge: Bridge
    keys: Keys
    channels: Channels
    """On the kernel's side only, as all down to `tell`."""

    speech: Speech
    sessions: Sessions
    jobs: Jobs
    memories: Memories
    forgetting: Forgetting
    runs: Runs
    employing: Employing
    backstage: Backstage
    logs: LogRing
    """From any thread."""

    tell: Tell
    awaiting: Awaiting
    """On the edge's side only."""

    figures: WebFigures
    uploads: Uploads
    """Called in threads."""

    refused: Callable[[RefusedAttempt], None]
    """Puts on record that somebody was not let in; from any thread."""
