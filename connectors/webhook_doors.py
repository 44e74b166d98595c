"""Makes what `web/webhooks.py` needs of the settings: which webhooks there are."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from actors.messages import Address
from actors.rules.webhook_signature import SHORTEST_KEY, key_of
from connectors.web.webhooks import Door

if TYPE_CHECKING:
    from connectors.config import AppConfig
    from connectors.webhook_config import WebhookInConfig


def doors_of(config: AppConfig) -> dict[str, Door]:
    """Give the webhooks that come in, by name.

    Args:
        config: checked settings.
    """
    return {
        name: door_of(webhook, config)
        for name, webhook in config.webhooks.incoming.items()
    }


def door_of(webhook: WebhookInConfig, config: AppConfig) -> Door:
    """Make one."""
    connector, _, chat = webhook.chat.partition("/")
    before = webhook.previous_secret
    nobodys = secrets.token_bytes(2 * SHORTEST_KEY)
    return Door(
        scheme=webhook.scheme,
        keys=(
            key_of(webhook.secret.reveal()),
            nobodys if before is None else key_of(before.reveal()),
        ),
        window=config.webhooks.replay_window,
        agents=tuple(dict.fromkeys(webhook.agents)),
        address=Address(connector, chat),
        platform=str(type(config.connectors[connector]).__struct_config__.tag),
        task=webhook.task,
        events=webhook.events,
        fields=webhook.fields,
        max_chars=webhook.max_chars,
        is_group=not webhook.own_conversation,
        per_minute=webhook.per_minute,
        max_open=webhook.max_open,
    )
