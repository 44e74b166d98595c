"""What postcards are to the rest of the program: settings, checks, limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from msgspec import Meta

from actors.config.access import AccessConfig
from actors.rules.prompt.texts import ReplyStyle
from actors.rules.text.measure import Measure
from connectors.chat.platforms import Platform, PlatformLimits
from connectors.config.app import AppConfig, ConnectorConfig
from connectors.config.checks import unknown
from runtime.config.loader import Complaint


class PostcardConfig(ConnectorConfig, frozen=True, tag="postcard"):
    """The desk of one agent at an office."""

    office: Annotated[str, Meta(min_length=1)]
    """Name of the office."""

    agent: str
    """Who answers there."""

    access: AccessConfig | None = None
    """Who may write; unset: its owners alone."""

    retry_failures: bool = True
    """Whether a turn that failed is begun again after a while, by `[retries]`."""


def check(mine: Mapping[str, PostcardConfig], app: AppConfig) -> Iterator[Complaint]:
    """Check every connector of this kind."""
    taken: dict[str, str] = {}
    for name, connector in mine.items():
        way = ("connectors", name)
        yield from unknown((*way, "agent"), "agent", connector.agent, app.agents)
        other = taken.setdefault(connector.office, name)
        if other != name:
            text = f"connectors.{other} has a desk at this office already"
            yield Complaint((*way, "office"), text, "name another office")


PLATFORM = Platform(
    package="tests.support.postcard",
    config=PostcardConfig,
    check=check,
    name="the postcard office",
    limits=PlatformLimits(
        text=400, part=380, caption=100, upload_bytes=1_000, measure=Measure({"=": 2})
    ),
    dialect="Postcard",
    reply_style=ReplyStyle("You write postcards: be brief."),
    is_public=True,
)
