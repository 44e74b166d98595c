"""What discord.py's caches tell of where something was said."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from connectors.chat.discord.snowflakes import number
from connectors.chat.loose_json import Json, table, text, texts

if TYPE_CHECKING:
    from collections.abc import Iterable

    import discord


def roles_of(guild: discord.Guild, payload: Json) -> tuple[str, ...]:
    """Say what somebody is in a server, by rights and by roles."""
    member, author = table(payload.get("member")), table(payload.get("author"))
    user = text(author.get("id")) or text(table(member.get("user")).get("id"))
    ids = texts(member.get("roles"))
    found = [guild.get_role(number(each)) for each in ids]
    rights = [each.permissions for each in found if each is not None]
    ranks: list[str] = []
    if number(user) == guild.owner_id or any(each.administrator for each in rights):
        ranks = ["admin"]
    elif any(each.manage_guild or each.manage_messages for each in rights):
        ranks = ["moderator"]
    return (*ranks, *(f"role:{each}" for each in ids))


def names_in(guild: discord.Guild, said: str, roles: Iterable[str]) -> dict[str, str]:
    """Give how channels and roles are called that a text mentions."""
    names: dict[str, str] = {}
    for each in said.split("<#")[1:50]:
        known = each.partition(">")[0]
        channel = guild.get_channel_or_thread(number(known))
        if channel is not None:
            names[f"#{known}"] = channel.name
    for known in roles:
        role = guild.get_role(number(known))
        if role is not None:
            names[f"&{known}"] = role.name
    return names


def shapes(commands: Iterable[object]) -> list[tuple[str, str, tuple[str, ...]]]:
    """Give of commands what we say of them, in order."""
    found: list[tuple[str, str, tuple[str, ...]]] = []
    for each in map(table, commands):
        options = cast("list[object]", each.get("options") or [])
        named = [text(table(one).get("description")) for one in options]
        found.append(
            (text(each.get("name")), text(each.get("description")), tuple(named))
        )
    return sorted(found)
