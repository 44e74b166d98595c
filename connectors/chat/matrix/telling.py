"""Says in a room what the runtime itself has to say, as well as it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.chat.faults import PlatformError, ShutOutError
from connectors.chat.matrix import content
from connectors.chat.matrix.homeserver import Call, path_of
from runtime.logs import EventLog

if TYPE_CHECKING:
    from connectors.chat.matrix.account import MatrixAccount

LOG = EventLog("matrix")


async def tell(room_id: str, words: str, key: str, account: MatrixAccount) -> None:
    """Say a notice; said twice under one key it is seen once.

    Raises:
        ShutOutError: the account is not let in.
    """
    txn = content.transaction(key)
    call = Call(
        method="PUT",
        path=path_of("rooms", room_id, "send", "m.room.message", txn),
        body=content.words("m.notice", words),
        timeout=account.timeout,
    )
    try:
        await account.ask(call)
    except ShutOutError:
        raise
    except PlatformError as error:
        LOG.warning("notice not said", room=room_id, notice=words, why=str(error))
