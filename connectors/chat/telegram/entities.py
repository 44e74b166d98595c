"""The marks in a text that people sent: who is called, which command is given; pure.

Source: Bot API, "MessageEntity": offsets and lengths are counted in UTF-16 units, in
which a letter beyond U+FFFF counts 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from connectors.chat.telegram.wire import Entity, User


class Command(msgspec.Struct, frozen=True):
    """A command at the beginning of a text."""

    name: str
    """Without its slash and without the bot's name."""

    bot: str = ""
    """Username of the bot that is meant, without the at sign; empty: any that hears."""

    rest: str = ""


def cut_out(text: str, offset: int, length: int) -> str:
    """Give a part of a text by UTF-16 units.

    A part that begins or ends inside a letter, or outside the text, is cut to whole
    letters that are there: it is somebody else's count.
    """
    if offset < 0 or length <= 0:
        return ""
    if text.isascii():
        return text[offset : offset + length]
    units = text.encode("utf-16-le", "surrogatepass")
    part = units[2 * offset : 2 * (offset + length)]
    return part.decode("utf-16-le", "ignore")


def is_called(text: str, entities: Sequence[Entity], bot: User) -> bool:
    """Tell whether a text calls a bot: by name, by a link to it, or by a command."""
    name = f"@{bot.username}".casefold()
    for entity in entities:
        said = cut_out(text, entity.offset, entity.length).casefold()
        match entity.type:
            case "mention" if bot.username and said == name:
                return True
            case "text_mention" if entity.user is not None and entity.user.id == bot.id:
                return True
            case "bot_command" if bot.username and said.endswith(name):
                return True
            case _:
                continue
    return False


def command_of(text: str, entities: Sequence[Entity]) -> Command | None:
    """Give the command that a text begins with; None if it begins with none."""
    first = next(
        (each for each in entities if each.type == "bot_command" and not each.offset),
        None,
    )
    if first is None:
        return None
    said = cut_out(text, 0, first.length)
    name, _, bot = said.removeprefix("/").partition("@")
    return Command(name, bot, text[len(said) :].strip()) if name else None
