"""Asks Slack about each app of the settings; says and changes nothing there."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

from connectors.commands.doctor_checks import Finding

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from connectors.chat.slack.probing import Found
    from connectors.slack_config import SlackConfig

    Ask = Callable[[SlackConfig], Awaitable[dict[str, list[Found]]]]

ABOUT = "connector"

PROBING = "connectors.chat.slack.probing"
"""Imported only for settings with such a connector: it needs the extra `slack`."""


async def look_at_slack(place: str, config: SlackConfig) -> list[Finding]:
    """Ask about each app.

    Args:
        place: of the connector, as settings call it.
        config: its settings.
    """
    try:
        ask = cast("Ask", importlib.import_module(PROBING).probe)
    except ModuleNotFoundError as error:
        text = f"{place}: there is no module {error.name!r}"
        return [Finding("wrong", ABOUT, text, "pip install 'callboard[slack]'")]
    return [
        Finding(each.state, ABOUT, f"{place}.accounts.{agent}: {each.text}", each.cure)
        for agent, found in (await ask(config)).items()
        for each in found
    ]
