"""Where an account's requests go, and what every one of them carries.

Pure, but for loading certificates. Settings in, addresses and headers out.
"""

from __future__ import annotations

import base64
import re
from functools import lru_cache
from typing import TYPE_CHECKING

import httpx
import msgspec

from connectors.config.models import merged
from runtime.errors import SettingsError

if TYPE_CHECKING:
    from connectors.config.embedders import HttpEmbedderConfig
    from connectors.config.models import ConnectionConfig, HttpModelConfig
    from connectors.config.tools import SpeakerConfig, TranscriberConfig
    from connectors.models.format import Format

    AddressConfig = (
        ConnectionConfig | HttpEmbedderConfig | SpeakerConfig | TranscriberConfig
    )

EXAMPLE = "https://api.openai.com/v1"


def check_address(base_url: str) -> httpx.URL:
    """Read the address that an account's requests begin with.

    Raises:
        SettingsError: `base_url` is no HTTP address.
    """
    try:
        url = httpx.URL(base_url.strip())
    except httpx.InvalidURL as error:
        raise SettingsError(f"base_url is no address: {error}") from error
    if url.scheme not in {"http", "https"} or not url.host:
        raise SettingsError(
            "base_url must start with http:// or https:// and name a host, as in "
            f"{EXAMPLE}"
        )
    return url


VERSION = re.compile(r"/v[0-9][a-z0-9]*(?=/|$)")
ENDPOINT = re.compile(
    r"/((chat/)?completions|responses|messages|models|api/(chat|tags))$"
)


def likely_base(config: AddressConfig) -> str:
    """Return the base_url that was probably meant, where nothing is under this one.

    It has the version that this kind of provider documents (`/v1`), or none where that
    has none, and no endpoint at its end. Empty: it looks right as it is. Without a
    password, and without what stands behind its `?`.
    """
    given = httpx.URL(config.base_url.strip()).copy_with(userinfo=b"", query=None)
    defaults = {each.name: each.default for each in msgspec.structs.fields(config)}
    usual = httpx.URL(str(defaults["base_url"])).path.rstrip("/")
    path = ENDPOINT.sub("", given.path.rstrip("/"))
    if not usual:
        path = VERSION.sub("", path)
    elif not VERSION.search(path):
        path += usual
    is_same = path == given.path.rstrip("/")
    return "" if is_same else str(given.copy_with(path=path or "/")).rstrip("/")


@lru_cache(maxsize=256)
def address(base_url: str, path: str) -> httpx.URL:
    """Find where to ask; kept, because parsing costs as much as a small answer.

    Args:
        base_url: of the account; what stands behind its `?` goes with each request.
        path: of the format.
    """
    base, _, query = base_url.strip().partition("?")
    url = base.rstrip("/") + path
    if not query:
        return httpx.URL(url)
    return httpx.URL(f"{url}{'&' if '?' in path else '?'}{query}")


def sendable_key(config: HttpModelConfig) -> str:
    """Strip the space around a key, which files end with; empty if there is none.

    Raises:
        SettingsError: it holds characters that no header may carry.
    """
    return sendable("api_key", config.api_key.reveal()) if config.api_key else ""


def sendable(name: str, value: str) -> str:
    """Strip the space around what goes into a header.

    Raises:
        SettingsError: it holds characters that no header may carry.
    """
    value = value.strip()
    if not (value.isascii() and value.isprintable()):
        raise SettingsError(
            f"{name} holds characters that cannot be sent; copy it again"
        )
    return value


def with_extra(body: bytes, extra: bytes) -> bytes:
    """Merge further parameters into a request's body; both are JSON objects."""
    table = dict[str, object]
    own = msgspec.json.decode(body, type=table)
    return msgspec.json.encode(merged(own, msgspec.json.decode(extra, type=table)))


def request_headers(
    config: HttpModelConfig, url: httpx.URL, key: str, form: Format
) -> dict[str, str]:
    """Make the headers of every request; those of the settings count most.

    Raises:
        SettingsError: one holds characters that cannot be sent.
    """
    headers = {
        "Host": url.netloc.decode("ascii"),
        "Accept": form.stream_type if config.stream else "application/json",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        "User-Agent": "callboard",
    } | form.headers(key)
    if url.userinfo:
        # Some servers at home stand behind a name and a password in their address.
        word = base64.b64encode(f"{url.username}:{url.password}".encode()).decode()
        headers |= {"Authorization": f"Basic {word}"}
    return headers | {n: sendable(n, x.reveal()) for n, x in config.headers.items()}
