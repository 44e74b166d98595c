"""What the terminal is to the rest of the program: settings and their check."""

from collections.abc import Iterator, Mapping

import msgspec

from actors.rules.prompt.texts import ReplyStyle
from connectors.chat.platforms import Platform
from connectors.config.app import AppConfig, ConnectorConfig
from runtime.config.loader import Complaint


class TerminalConfig(ConnectorConfig, frozen=True, tag="terminal"):
    """The terminals that `callboard chat` opens."""

    user: str = "you"
    """Name of the person at the keyboard, as the agents see it."""

    retry_failures: bool = True
    """Whether a turn that failed is begun again after a while, by `[retries]`."""


NAME = "terminal"
"""Name of the account if the settings have no terminal."""


def terminal_of(config: AppConfig) -> tuple[str, TerminalConfig]:
    """Give the terminal account of some settings; the usual one if they have none."""
    for name, each in config.connectors.items():
        if isinstance(each, TerminalConfig):
            return name, each
    names = (NAME, *(f"{NAME}-{number}" for number in range(2, 99)))
    free = next(name for name in names if name not in config.connectors)
    return free, TerminalConfig()


def with_terminal(config: AppConfig, user: str = "") -> AppConfig:
    """Give settings that have a terminal account.

    Args:
        user: who sits there, and may approve tool calls; empty: as the settings say.
    """
    name, terminal = terminal_of(config)
    seated = msgspec.structs.replace(terminal, user=user or terminal.user)
    connectors = {**config.connectors, name: seated}
    return msgspec.structs.replace(config, connectors=connectors)


def check(mine: Mapping[str, TerminalConfig], _app: AppConfig) -> Iterator[Complaint]:
    """Complain of each terminal but the first: the program has one."""
    first, *others = mine or ("",)
    for name in others:
        text = f"the terminals have a table already, {first!r}"
        yield Complaint(("connectors", name), text, "take one of the two out")


PLATFORM = Platform(
    package="connectors.chat.terminal",
    config=TerminalConfig,
    check=check,
    has_doctor=False,
    reply_style=ReplyStyle(
        "You write in a terminal. Markdown is drawn there, tables, lists and code, too;"
        " keep lines and tables narrow. A pipe shows it as it is."
    ),
    names_agent=False,
    is_server=False,
    approvers=lambda config: (config.user,),
)
