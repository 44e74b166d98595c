"""Where an account's requests go, and what every one of them carries.

Pure, but for loading certificates. Settings in, addresses and headers out.
"""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import TYPE_CHECKING

import httpx

from runtime.errors import SettingsError

if TYPE_CHECKING:
    from connectors.config.models import HttpModelConfig
    from connectors.models.format import Format

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


@lru_cache(maxsize=256)
def address(base_url: str, path: str) -> httpx.URL:
    """Find where to ask; kept, because parsing costs as much as a small answer."""
    return httpx.URL(base_url.strip().rstrip("/") + path)


def sendable_key(config: HttpModelConfig) -> str:
    """Strip the space around a key, which files end with; empty if there is none.

    Raises:
        SettingsError: it holds characters that no header may carry.
    """
    key = config.api_key.reveal().strip() if config.api_key else ""
    if not (key.isascii() and key.isprintable()):
        raise SettingsError(
            "api_key holds characters that cannot be sent; copy it again"
        )
    return key


def request_headers(
    url: httpx.URL, key: str, form: Format, *, stream: bool
) -> dict[str, str]:
    """Make the headers of every request."""
    headers = {
        "Host": url.netloc.decode("ascii"),
        "Accept": form.stream_type if stream else "application/json",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        "User-Agent": "callboard",
    } | form.headers(key)
    if url.userinfo:
        # Some servers at home stand behind a name and a password in their address.
        word = base64.b64encode(f"{url.username}:{url.password}".encode()).decode()
        return headers | {"Authorization": f"Basic {word}"}
    return headers
