"""What a Discord in memory knows: bots, servers, channels and what was said there."""

from __future__ import annotations

import time
from typing import Any

Json = dict[str, Any]

GUILD, CHANNEL, OTHER_CHANNEL = (
    "100000000000000001",
    "200000000000000001",
    "200000000000000002",
)
EVERYONE, ADMINS = GUILD, "300000000000000001"
ZOE, SAM = "400000000000000001", "400000000000000002"
VIEW, ADMINISTRATOR = 1 << 10 | 1 << 11 | 1 << 16, 1 << 3
TEXT, DIRECT, THREAD = 0, 1, 11
MESSAGE_CONTENT = 1 << 15


def new_id(last: list[int]) -> str:
    """Make an id of now, above all before it."""
    last[0] = max(last[0] + 1, (wall_ms() - 1_420_070_400_000) << 22)
    return str(last[0])


def wall_ms() -> int:
    """Give Unix milliseconds."""
    return time.time_ns() // 1_000_000


class World:
    """All that is there; the fake server tells clients of it."""

    def __init__(self) -> None:
        self._last = [0]
        self.bots: dict[str, Json] = {}
        """Bots by token."""

        self.allowed: dict[str, bool] = {}
        """Whether a bot (by id) may have the content of messages."""

        self.users: dict[str, Json] = {
            ZOE: {"id": ZOE, "username": "zoe", "global_name": "Zoe"},
            SAM: {"id": SAM, "username": "sam", "global_name": "Sam"},
        }
        self.members: dict[str, Json] = {ZOE: {"roles": []}, SAM: {"roles": []}}
        self.channels: dict[str, Json] = {}
        self.messages: dict[str, list[Json]] = {}
        self.hidden: set[tuple[str, str]] = set()
        """(channel, bot) where a bot may not look."""

        self.nonces: dict[tuple[str, str], Json] = {}
        self.commands: dict[str, list[Json]] = {}
        self.signs: dict[str, list[tuple[str, str]]] = {}
        """Signs by message: by which bot, and which."""

        self.typing: list[tuple[str, str]] = []
        self.answers: dict[str, Json] = {}
        """Answers to interactions by token."""

        self.files: dict[str, bytes] = {}
        for known, name in ((CHANNEL, "crew"), (OTHER_CHANNEL, "desk")):
            self.add_channel(known, TEXT, name=name, guild_id=GUILD)

    def add_bot(self, name: str, token: str, *, sees_content: bool = True) -> str:
        """Make a bot; give its id."""
        known = str(500_000_000_000_000_001 + len(self.bots))
        user = {"id": known, "username": name, "global_name": None, "bot": True}
        self.bots[token] = self.users[known] = user
        self.members[known] = {"roles": [self.role_of(known)]}
        self.allowed[known] = sees_content
        return known

    def role_of(self, bot: str) -> str:
        """Give the id of the role that Discord makes for a bot."""
        return str(int(bot) + 100_000_000_000_000_000)

    def add_channel(self, known: str, kind: int, **more: Any) -> str:
        """Make a channel, a thread or a direct chat."""
        self.channels[known] = {
            "id": known,
            "type": kind,
            "last_message_id": None,
            "permission_overwrites": [],
            "position": 0,
            **more,
        }
        self.messages[known] = []
        return known

    def direct(self, bot: str, person: str = ZOE) -> str:
        """Make the direct chat of a bot and a person."""
        known = str(int(bot) + 200_000_000_000_000_000 + int(person) % 1000)
        if known not in self.channels:
            self.add_channel(known, DIRECT, recipients=[bot, person])
        return known

    def sees(self, bot: str, channel: str) -> bool:
        """Tell whether a bot can read a channel."""
        found = self.channels[channel]
        if found["type"] == DIRECT:
            return bot in found["recipients"]
        return (channel, bot) not in self.hidden

    def add_message(self, channel: str, author: str, said: str, **more: Any) -> Json:
        """Have somebody say something."""
        message: Json = {
            "id": new_id(self._last),
            "type": 0,
            "channel_id": channel,
            "author": {"discriminator": "0", "avatar": None, **self.users[author]},
            "content": said,
            "timestamp": "2026-01-01T00:00:00+00:00",
            "edited_timestamp": None,
            "tts": False,
            "mention_everyone": False,
            "mentions": [
                {"discriminator": "0", "avatar": None, **user}
                for known, user in self.users.items()
                if f"<@{known}>" in said
            ],
            "mention_roles": [],
            "attachments": [],
            "embeds": [],
            "pinned": False,
            **more,
        }
        self.messages[channel].append(message)
        self.channels[channel]["last_message_id"] = message["id"]
        return message

    def told(self, message: Json, bot: str, intents: int) -> Json:
        """Give a message as the gateway tells a bot."""
        channel = self.channels[message["channel_id"]]
        told = dict(message)
        if "guild_id" in channel:
            told["guild_id"] = channel["guild_id"]
            member = self.members.get(message["author"]["id"])
            if member is not None:
                told["member"] = {
                    **member,
                    "joined_at": None,
                    "deaf": False,
                    "mute": False,
                    "flags": 0,
                }
            is_for_it = any(each["id"] == bot for each in message["mentions"])
            if not (intents & MESSAGE_CONTENT or is_for_it):
                told |= {"content": "", "attachments": [], "embeds": []}
        return told

    def guild_of(self, bot: str) -> Json:
        """Give the server as a bot is told of it."""
        roles = [
            role(EVERYONE, "@everyone", VIEW),
            role(ADMINS, "admins", ADMINISTRATOR),
        ]
        for each in self.bots.values():
            made = role(self.role_of(each["id"]), each["username"], VIEW)
            made["tags"] = {"bot_id": each["id"]}
            roles.append(made)
        listed = [c for c in self.channels.values() if c.get("guild_id") == GUILD]
        channels = [self._listed(c, bot) for c in listed if c["type"] == TEXT]
        member = {
            **self.members[bot],
            "user": {"discriminator": "0", "avatar": None, **self.users[bot]},
        }
        return {
            "id": GUILD,
            "name": "Crew",
            "owner_id": SAM,
            "unavailable": False,
            "member_count": 4,
            "roles": roles,
            "emojis": [],
            "stickers": [],
            "features": [],
            "channels": channels,
            "threads": [
                c for c in listed if c["type"] == THREAD and not c.get("is_asleep")
            ],
            "members": [
                {
                    **member,
                    "joined_at": "2020-01-01T00:00:00+00:00",
                    "deaf": False,
                    "mute": False,
                    "flags": 0,
                }
            ],
            "voice_states": [],
            "presences": [],
            "stage_instances": [],
            "guild_scheduled_events": [],
            "soundboard_sounds": [],
            "premium_tier": 0,
            "premium_subscription_count": 0,
            "preferred_locale": "en-US",
            "nsfw_level": 0,
            "verification_level": 0,
            "default_message_notifications": 0,
            "explicit_content_filter": 0,
            "mfa_level": 0,
            "afk_timeout": 60,
            "system_channel_flags": 0,
            "premium_progress_bar_enabled": False,
        }

    def _listed(self, channel: Json, bot: str) -> Json:
        if self.sees(bot, channel["id"]):
            return channel
        hidden = {"id": EVERYONE, "type": 0, "allow": "0", "deny": str(VIEW)}
        return {**channel, "permission_overwrites": [hidden]}


def role(known: str, name: str, rights: int) -> Json:
    """Describe a role."""
    return {
        "id": known,
        "name": name,
        "permissions": str(rights),
        "color": 0,
        "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
        "hoist": False,
        "position": 0,
        "managed": False,
        "mentionable": True,
        "flags": 0,
    }
