"""What the terminal is to the rest of the program: settings and their check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from actors.rules.prompt.texts import ReplyStyle
from connectors.chat.platforms import Platform
from connectors.config.app import AppConfig, ConnectorConfig
from runtime.config.loader import Complaint


class TerminalConfig(ConnectorConfig, frozen=True, tag="terminal"):
    """The terminal that `callboard chat` runs in."""

    user: str = "you"
    """Name of the person at the keyboard, as the agents see it."""

    retry_failures: bool = True
    """Whether a turn that failed is begun again after a while, by `[retries]`."""

    on_unknown: Literal["resend", "hold"] = "resend"
    """What is done after a crash about an answer that may have been shown: say it
    again, or keep it back until `callboard queue retry` or `drop` decides."""


def check(mine: Mapping[str, TerminalConfig], _app: AppConfig) -> Iterator[Complaint]:
    """Complain of each terminal but the first: the program has one."""
    first, *others = mine or ("",)
    for name in others:
        text = f"there is one terminal, and {first!r} has it"
        yield Complaint(("connectors", name), text, "take one of the two out")


PLATFORM = Platform(
    package="connectors.chat.terminal",
    config=TerminalConfig,
    check=check,
    has_doctor=False,
    reply_style=ReplyStyle(
        "You write in a terminal. Plain text is shown as it is: no Markdown, no tables,"
        " lines that fit a screen."
    ),
    names_agent=False,
    is_served=False,
    approvers=lambda config: (config.user,),
)
