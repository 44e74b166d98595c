"""The stage of Slack, on which the suite of all transports plays."""

from __future__ import annotations

from html import escape

import trio

from tests.support.chat.slack_bed import DIRECT, ZOE as PERSON, SlackBed


class SlackStage:
    """Slack, with a workspace in memory and a person alone with one agent."""

    can_repeat = True

    def __init__(self) -> None:
        self.bed = SlackBed("anna")
        self.transport = self.bed.transport
        self.ingress = self.bed.ingress
        self.listening = trio.CancelScope()
        self.ended = trio.Event()
        self._keys: dict[str, str] = {}

    async def write(self, text: str, key: str = "") -> None:
        """Have the person write; Slack escapes what its own marks are made of."""
        slack = self.bed.slack
        before = slack.find(DIRECT, self._keys.get(key, "")) if key else None
        if before is not None:
            slack.tell(DIRECT, before)
        else:
            self._keys[key] = slack.say(DIRECT, PERSON, escape(text, quote=False))

    def acknowledged(self) -> int:
        """Count the envelopes of what the person wrote."""
        slack = self.bed.slack
        return len(slack.acknowledged) - len(slack.said(DIRECT))

    def shown(self) -> str:
        return "\n".join(self.bed.shown(DIRECT))

    async def wait_change(self) -> None:
        await self.bed.slack.wait_change()
