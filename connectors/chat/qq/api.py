"""One agent's bot on QQ: its access token, its requests, and what refusals mean.

The kinds of errors are those of `connectors/chat/requests.py`, and three finer ones.

Source: QQ, "接口调用与鉴权", "发送消息", "富媒体消息" and "错误码". Codes above
40,000,000 are not listed there, and are those that other bots report.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import httpx
import msgspec
import trio

from connectors.chat.accounts import AgentAccount
from connectors.chat.qq.platform import QQAccountConfig, QQConfig
from connectors.chat.requests import (
    LONGEST_QUOTE,
    BusyError,
    HttpAnswer,
    HttpPool,
    Json,
    LostError,
    PlatformError,
    RefusedError,
    RequestContent,
    ShutOutError,
    Upload,
    decode,
    read_json,
    table,
    text,
    wait_asked,
    whole,
)
from runtime.telemetry.logs import EventLog

LOG = EventLog("qq")

MOST_ANSWER = 1024 * 1024
"""Bytes."""

# Chosen: some messages and files side by side for each bot.
MOST_CONNECTIONS = 20

# Source: "HTTP状态码": 201 and 202 mean that people at QQ look at a message first.
DONE = frozenset({200, 201, 202, 204})
UNAUTHORIZED, TOO_MANY, SERVER_FAULT = 401, 429, 500
UNAVAILABLE = frozenset({502, 503})
"""Nothing was carried out."""

# Source: "获取调用凭证": in its last 60 seconds a token is replaced, and still holds.
REPLACED = 45.0
"""Seconds before its end from which a new token is asked for."""

# Seen: of the address for tokens; the AppID or the secret is wrong.
WRONG_SECRET = frozenset({100007, 100016})

TOKENS = frozenset({11241, 11243, 11244})
"""The access token is not taken."""

MENDED_BY_OPERATOR = frozenset({10001, 11251, 11253, 11254, 11265, 11275})
DUPLICATES = frozenset({40054005})

WINDOWS = frozenset(
    {304022, 304026, 304027, 304035, 304103}
    | {40034005, 40034024, 40034025, 40034026, 40034027, 40034128}
    | {22009, 40034100, 40034102, 40034105}
)
"""The message can be answered no longer, or not so often; or words that answer nothing
are not taken (22009, 40034100 and after)."""

ADDRESSES = frozenset({304003, 40054010})
BUSY = frozenset({20028, 304045, 11242, 11252, 11263, 11281})
"""Too many messages in this channel; QQ could not look something up."""


class TokenError(RefusedError):
    """The access token is not taken (any more)."""


class DuplicateError(RefusedError):
    """QQ has this answer already."""


class WindowClosedError(RefusedError):
    """The message that is answered is too old, or was answered too often."""


class AddressError(RefusedError):
    """A web address stands in it that is not registered for the bot."""


def read_error(status: int, headers: Mapping[str, str], body: bytes) -> PlatformError:
    """Return the error that a refusal means."""
    try:
        said = decode(body)
    except (ValueError, RecursionError):
        said = Json()
    code = whole(said.get("err_code")) or whole(said.get("code"))
    words = " ".join(text(said.get("message")).split())[:LONGEST_QUOTE]
    number = str(code) if code else ""
    told = ": ".join(part for part in (f"HTTP {status}", number, words) if part)
    finer: tuple[tuple[frozenset[int], type[RefusedError]], ...] = (
        (DUPLICATES, DuplicateError),
        (WINDOWS, WindowClosedError),
        (ADDRESSES, AddressError),
        (TOKENS, TokenError),
    )
    for codes, kind in finer:
        if code in codes:
            return kind(told, number, status)
    if code in MENDED_BY_OPERATOR:
        return ShutOutError(told)
    if status == TOO_MANY or code in BUSY or status in UNAVAILABLE:
        return BusyError(told, wait_asked(headers))
    if status == UNAUTHORIZED:
        return TokenError(told, number, status)
    return LostError(told) if status >= SERVER_FAULT else RefusedError(told, number)


class QQAccount(AgentAccount):
    """The bot of one agent.

    Args:
        network: what carries the requests; None is the network.
    """

    kind = "bot"

    def __init__(
        self,
        agent: str,
        account: QQAccountConfig,
        config: QQConfig,
        network: httpx.AsyncBaseTransport | None,
    ) -> None:
        super().__init__(agent, "QQ")
        self.id = account.app_id
        self.user = ""
        """Its own id in channels; empty before the gateway has told."""

        self.pool = HttpPool(network, MOST_CONNECTIONS, LostError)
        self._secret = account.app_secret
        self._config = config
        self._token, self._until = "", 0.0
        self._asking = trio.Lock()

    async def ask(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        upload: Upload | None = None,
        fields: Mapping[str, str] | None = None,
        within: float | None = None,
    ) -> Json:
        """Ask for JSON; with a fresh token once more if QQ does not take this one.

        Args:
            path: below the address of the API.
            body: what is said, as JSON; or
            upload: a file, in a form, and
            fields: what else is in the form.
            within: seconds for all of it; None: as the settings say.

        Raises:
            BusyError: it cannot be reached, or not now.
            LostError: it was asked, and no whole answer came.
            ShutOutError: the bot is not let in.
            RefusedError: it will never do this; see the finer kinds.
        """
        content: RequestContent = {"data": fields}
        if body is not None:
            content = {"content": msgspec.json.encode(body)}
        once = partial(self._ask_once, method, path, upload, within, content)
        try:
            return await once()
        except TokenError as error:
            LOG.info("access token not taken", bot=self.agent, why=str(error))
        try:
            return await once()
        except TokenError as error:
            raise ShutOutError(str(error)) from error

    async def _ask_once(
        self,
        method: str,
        path: str,
        upload: Upload | None,
        within: float | None,
        content: RequestContent,
    ) -> Json:
        token = await self.token()
        headers = {"Authorization": f"QQBot {token}"}
        if "content" in content:
            headers["Content-Type"] = "application/json"
        asked: RequestContent = {**content, "headers": headers}
        answer = await self.pool.send(
            method,
            f"{self._config.api.strip().rstrip('/')}{path}",
            within=within or self._config.request_timeout,
            silence=self._config.request_timeout,
            most=MOST_ANSWER,
            upload=upload,
            **asked,
        )
        if answer.status in DONE:
            return read_json(answer.body) if answer.body else {}
        error = read_error(answer.status, answer.headers, answer.body)
        if isinstance(error, TokenError):
            self.forget_token(token)
        raise error

    async def token(self) -> str:
        """Return an access token that still holds; raises as `ask`."""
        async with self._asking:
            if trio.current_time() >= self._until:
                await self._renew()
            return self._token

    def forget_token(self, token: str = "") -> None:
        """Ask for another one before the next request, unless that was done."""
        if token in {"", self._token}:
            self._until = 0.0

    async def _renew(self) -> None:
        secret = self._secret.reveal().strip()
        answer = await self.pool.send(
            "POST",
            self._config.token_url.strip(),
            within=self._config.request_timeout,
            most=MOST_ANSWER,
            json={"appId": self.id, "clientSecret": secret},
        )
        self._token, lasts = read_token(answer)
        self._until = trio.current_time() + max(0.0, lasts - REPLACED)


def read_token(answer: HttpAnswer) -> tuple[str, float]:
    """Return an access token, and the seconds for which it holds.

    Raises:
        BusyError: there is none now.
        ShutOutError: the AppID or its secret is wrong.
    """
    if answer.status not in DONE:
        error = read_error(answer.status, answer.headers, answer.body)
        # Asking for a token changes nothing.
        raise error if isinstance(error, BusyError) else BusyError(str(error))
    said = read_json(answer.body)
    token = text(said.get("access_token"))
    if token:
        # QQ writes the number as a text.
        lasts = str(said.get("expires_in"))
        return token, float(lasts) if lasts.isascii() and lasts.isdigit() else 0.0
    code = whole(said.get("code"))
    told = f"QQ gives no access token: {code} {text(said.get('message'))}".strip()
    raise ShutOutError(told) if code in WRONG_SECRET else BusyError(told)


def receipt_of(answer: Json) -> str:
    """Return the id of a message that was sent.

    Raises:
        LostError: the answer names none.
    """
    audit = table(table(answer.get("data")).get("message_audit"))
    found = text(answer.get("id")) or text(audit.get("audit_id"))
    if not found:
        raise LostError("its answer names no message")
    return found
