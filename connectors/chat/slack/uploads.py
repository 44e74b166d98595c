"""Brings files to Slack, and has them shared in a channel.

Source: "Uploading files": `files.getUploadURLExternal` gives an address and the file's
id, the bytes go there, `files.completeUploadExternal` shares it with what is said of
it. Until that last step nobody sees anything, so that whatever fails before it is
simply done again.

Slack shares a file after its answer, when it has looked through it
(slackapi/bolt-js issue 2115). So the message's moment is asked for a little later
(`files.info`), and what is not in the history is only known not to come after a while.
The message bears no mark of ours: it is known by who shared it, its title and its size.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING

import trio

from connectors.blobs import bytes_of
from connectors.chat.faults import BusyError, LostError, PlatformError
from connectors.chat.loose_json import Json, table, tables, text
from connectors.chat.slack import reconciling
from connectors.chat.slack.content import shared
from connectors.chat.slack.moments import is_ts, message_id
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from actors.deliveries import Delivery
    from actors.messages import SentFile
    from connectors.blobs import BlobFolder
    from connectors.chat.slack.account import SlackAccount

LOG = EventLog("slack")

WAITS = (0.0, 0.5, 1.0, 2.0)
"""Seconds before each time that Slack is asked for the message of a file."""

# Chosen: Slack names no time; people see files within seconds.
SETTLES = 30.0
"""Seconds after which a file that is not in the history was not shared."""

MOST_ASKED = 200
"""Deliveries of which it is remembered when they were to be shared."""


class Uploads:
    """Files on their way to one workspace.

    Args:
        blobs: has the bytes; None: nobody has.
    """

    def __init__(self, blobs: BlobFolder | None) -> None:
        self._blobs = blobs
        self._asked: OrderedDict[str, float] = OrderedDict()

    async def say(
        self, delivery: Delivery, file: SentFile, words: str, account: SlackAccount
    ) -> str:
        """Share a delivery's file in its channel or thread.

        Args:
            delivery: which.
            file: what it brings.
            words: what is said of it; may be empty.
            account: by whose app.

        Returns:
            The message's id; where Slack does not tell it soon, the file's in its
            place, which no edit and no sign finds.

        Raises:
            DeliveryRefusedError: its bytes are gone.
            PlatformError: `LostError` only if it may have been shared.
        """
        path = bytes_of(self._blobs, file)
        try:
            known = await bring(file, path, account)
        except LostError as error:
            raise BusyError(f"the file was not brought to Slack: {error}") from error
        self._note(delivery.id)
        body = shared(delivery, words, known, file.name)
        await account.ask("files.completeUploadExternal", body)
        channel = delivery.address.chat
        return message_id(channel, await moment(known, channel, account) or known)

    async def find(
        self, delivery: Delivery, account: SlackAccount, others: Collection[str]
    ) -> str | None:
        """Look for a file in its channel or thread.

        One that the same app shared there shortly before, with the same title and
        size, is taken for it, unless it is known to be another: the person has it.

        Args:
            delivery: whose.
            account: by whose app.
            others: receipts of other deliveries.

        Raises:
            BusyError: it is not there, and may still come.
            PlatformError: it cannot be looked for.
        """
        is_it = partial(brings, delivery, account, others)
        found = await reconciling.find(delivery, account, is_it)
        if found is not None:
            return found
        since = self._asked.get(delivery.id)
        if since is None:  # as after a restart
            since = self._note(delivery.id)
        left = since + SETTLES - trio.current_time()
        if left > 0:
            raise BusyError("Slack may still be sharing the file", left)
        return None

    def _note(self, delivery_id: str) -> float:
        now = self._asked[delivery_id] = trio.current_time()
        self._asked.move_to_end(delivery_id)
        while len(self._asked) > MOST_ASKED:
            self._asked.popitem(last=False)
        return now


async def bring(file: SentFile, path: Path, account: SlackAccount) -> str:
    """Bring a file's bytes to Slack, where nobody sees them yet; gives its id there.

    Raises:
        PlatformError: it is not there.
    """
    asked = {"filename": file.name, "length": file.size}
    answer = await account.ask("files.getUploadURLExternal", asked)
    url, known = text(answer.get("upload_url")), text(answer.get("file_id"))
    if not url or not known:
        raise LostError("Slack gave no address for the file")
    await account.put(url, path, file.size)
    return known


async def moment(file: str, channel: str, account: SlackAccount) -> str:
    """Ask for the `ts` of the message that shares a file; empty: not known (yet)."""
    for wait in WAITS:
        await trio.sleep(wait)
        try:
            answer = await account.ask("files.info", {"file": file})
        except PlatformError as error:
            LOG.warning("message of a file not known", file=file, why=str(error))
            return ""
        shares = table(table(answer.get("file")).get("shares"))
        for kind in ("public", "private"):
            for each in tables(table(shares.get(kind)).get(channel)):
                if is_ts(text(each.get("ts"))):
                    return text(each.get("ts"))
    return ""


def brings(
    delivery: Delivery, account: SlackAccount, others: Collection[str], shown: Json
) -> bool:
    """Tell whether a message is the one that shares a delivery's file."""
    file, channel = delivery.file, delivery.address.chat
    by_it = account.user == text(shown.get("user"))
    by_it = by_it or account.bot == text(shown.get("bot_id"))
    if file is None or not by_it:
        return False
    names = [text(shown.get("ts"))]
    found = False
    for each in tables(shown.get("files")):
        names.append(text(each.get("id")))
        is_same = text(each.get("title")) == file.name
        found = found or (is_same and each.get("size", file.size) == file.size)
    return found and not any(message_id(channel, name) in others for name in names)
