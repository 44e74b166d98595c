r"""Takes Meta's calls: checks their signature, and submits their messages.

Meta signs the bytes that it sends, with the app's secret; they are never put together
anew, because Meta writes `\u00e4` where others write `ä`. It is answered 200 after all
that it brought is stored, and sends all of it again if it is not.

An app has one address for all its numbers.
"""

from __future__ import annotations

import hmac
import secrets
from typing import TYPE_CHECKING

import trio

from actors.webhooks.signature import GITHUB_SIGNATURE, SHORTEST_KEY, Rejected, verify
from connectors.chat.gates import PlatformAnswer, PlatformCall, Terms
from connectors.chat.whatsapp.events import Status, WhatsAppNews, read_news
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from actors.transport import Ingress
    from connectors.chat.whatsapp.inbound import WhatsAppSubmitter
    from connectors.chat.whatsapp.shared import WhatsAppShared

LOG = EventLog("whatsapp")

FILES_WITHIN = 8.0
"""Seconds in which all files of one webhook must have come: Meta waits meanwhile."""

LONGEST_CHALLENGE = 256
"""Characters."""

TAKEN, LATER, MALFORMED = PlatformAnswer(200), PlatformAnswer(503), PlatformAnswer(400)


class WhatsAppWebhooks:
    """The gate of one connector: takes Meta's calls for all its numbers."""

    def __init__(
        self, shared: WhatsAppShared, submitter: WhatsAppSubmitter, ingress: Ingress
    ) -> None:
        self._shared = shared
        self._submitter = submitter
        self._ingress = ingress
        key = shared.config.app_secret.reveal().strip().encode()
        # New with each start: what nobody can sign with, should the secret be none.
        nobodys = secrets.token_bytes(2 * SHORTEST_KEY)
        self._keys = (key if len(key) >= SHORTEST_KEY else nobodys, nobodys)
        self._agents = {each.id: each.agent for each in shared.numbers.values()}
        self._terms = Terms(
            methods=("GET", "POST"), most_bytes=shared.config.max_body_bytes
        )

    @property
    def terms(self) -> Terms:
        """See `gates.SignedGate`."""
        return self._terms

    def lets_in(self, headers: Mapping[str, str]) -> bool:
        """Return whether there is a signature at all."""
        return bool(headers.get(GITHUB_SIGNATURE))

    def check(self, call: PlatformCall) -> PlatformAnswer | None:
        """Answer Meta's handshake, and let in what it signed."""
        if call.method != "POST":
            return self._shake_hands(call)
        found = verify("github", self._keys, call.headers, call.body, now=0, window=0)
        if isinstance(found, Rejected):
            return PlatformAnswer(401, refused=found.reason)
        return None

    def _shake_hands(self, call: PlatformCall) -> PlatformAnswer:
        """Give back Meta's challenge if it knows our word."""
        wanted = self._shared.config.verify_token.reveal().strip().encode()
        given = call.query.get("hub.verify_token", "").encode()
        challenge = call.query.get("hub.challenge", "")
        is_right = hmac.compare_digest(given, wanted) and bool(wanted)
        is_whole = challenge.isalnum() and len(challenge) <= LONGEST_CHALLENGE
        if is_right and is_whole and call.query.get("hub.mode") == "subscribe":
            LOG.info("webhook verified", connector=self._shared.connector)
            return PlatformAnswer(200, challenge.encode(), media_type="text/plain")
        return PlatformAnswer(403, refused="bad_verify_token")

    async def answer(self, call: PlatformCall) -> PlatformAnswer:
        """Hand in all that a webhook brings; 200 once it is stored."""
        shared = self._shared
        try:
            news = read_news(call.body, self._agents, shared.clock.wall())
        except ValueError as error:
            LOG.warning("webhook left out", why=str(error))
            return MALFORMED
        self._note(news)
        for status in news.statuses:
            self._learn(status)
        until = trio.current_time() + FILES_WITHIN
        for heard in news.heard:
            # Why no further one after that: they would be stored in another order.
            if not await self._submitter.submit(heard, self._ingress, until):
                return LATER
        await trio.lowlevel.checkpoint()
        return TAKEN

    def _note(self, news: WhatsAppNews) -> None:
        """Count what comes, and say what is left out."""
        shared, now = self._shared, self._shared.clock.wall()
        numbers = [each.number for each in news.heard]
        numbers += [each.number for each in news.statuses]
        for number in numbers:
            shared.metrics.heard(shared.agent_of(number), now)
        for skipped in news.skipped:
            shared.metrics.event(shared.agent_of(skipped.number), skipped.reason)
            write = (
                LOG.info if skipped.reason in {"reaction", "system"} else LOG.warning
            )
            write("message left out", message=skipped.id, reason=skipped.reason)

    def _learn(self, status: Status) -> None:
        """Record what became of a message of ours."""
        shared = self._shared
        agent = shared.agent_of(status.number)
        shared.metrics.count("statuses", agent, status.state)
        if status.marker:
            shared.said.note(status.marker, status.id)
        if status.state != "failed":
            LOG.debug("status", message=status.id, state=status.state)
            return
        chat = shared.said.chat_of(status.marker)
        if status.is_outside_window and chat:
            shared.windows.refused(chat)
        LOG.warning(
            "message not delivered by WhatsApp",
            delivery=status.marker,
            message=status.id,
            chat=chat or status.person,
            agent=agent,
            why=status.why or "no reason was given",
        )
