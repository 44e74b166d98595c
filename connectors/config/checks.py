"""What the checks of several subjects share: names, addresses, time zones.

A file that has a setting which is retired is read as before. The setting has no effect,
and people are told so, with the reason, wherever doubtful settings are told.
"""

from __future__ import annotations

import ipaddress
import re
import zoneinfo
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, tzinfo
from urllib.parse import urlsplit

from runtime.config.loader import Complaint, close_to

Way = tuple[str | int, ...]
"""Where a setting stands: keys of tables and, from 0, places in lists."""


def unknown(
    way: Way, noun: str, name: str, known: Iterable[str]
) -> Iterator[Complaint]:
    """Complain of a name that nothing has."""
    names = list(known)
    if name not in names:
        yield Complaint(way, f"there is no {noun} {name!r}", close_to(name, names))


def slash_hint(written: str, connectors: Iterable[str], otherwise: str) -> str:
    """Say how an account or chat is written, for one that has no slash.

    Args:
        written: what stands there; `telegram:1` is meant as `telegram/1`.
        otherwise: the hint for anything else.
    """
    connector, _, rest = written.partition(":")
    is_meant = bool(rest) and connector in connectors
    return f'write "{connector}/{rest}"' if is_meant else otherwise


def check_address(
    way: Way, url: str, *, has_key: bool, example: str = "https://api.openai.com/v1"
) -> Iterator[Complaint]:
    """Check an address that requests, and perhaps a key, are sent to."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        has_login = bool(parts.username or parts.password)
    except ValueError:
        parts, host, has_login = urlsplit(""), None, False
    if parts.scheme not in {"http", "https"} or not host:
        is_in_list = isinstance(way[-1], int)
        shown = (
            f'{way[-2]} = ["{example}"]' if is_in_list else f'{way[-1]} = "{example}"'
        )
        yield Complaint(way, "is no http or https address", f"for example: {shown}")
    elif has_login:
        text = "holds a name or password, in the open"
        yield Complaint(way, text, 'use api_key = { env = "NAME" }')
    elif parts.scheme == "http" and has_key and not is_loopback(host):
        text = f"the key travels to {host} unencrypted"
        yield Complaint(way, text, "use https", is_warning=True)


def is_loopback(host: str) -> bool:
    """Tell whether an address can be reached from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_open_door(
    way: Way,
    host: str,
    *,
    has_key: bool,
    may: str = "may use the agents",
    variable: str = "CALLBOARD_API_KEY",
) -> Iterator[Complaint]:
    """Refuse a server that others can reach and anybody may use.

    Args:
        host: the address on which it listens.
        has_key: whether clients need a key.
        may: what anybody could do.
        variable: an example of where the key is.
    """
    if not has_key and not is_loopback(host):
        text = f"without api_key, everybody who reaches {host!r} {may}"
        hint = f'add api_key = {{ env = "{variable}" }}, or host = "127.0.0.1"'
        yield Complaint((*way, "host"), text, hint)


ORIGIN = re.compile(r"https?://[A-Za-z0-9._\[\]:-]+")
"""How browsers name the server of a page: without a path. `null` is nobody's."""


def check_origins(
    way: Way, origins: Iterable[str], *, has_key: bool
) -> Iterator[Complaint]:
    """Check which web pages may use a server; without a key, never all of them."""
    for index, origin in enumerate(origins):
        place = (*way, "origins", index)
        if origin == "*" and not has_key:
            text = "without a key, every web page could use the agents"
            yield Complaint(place, text, "set api_key, or list the pages")
        elif origin != "*" and not ORIGIN.fullmatch(origin):
            text = f"{origin!r} is no origin"
            hint = 'write it as "https://chat.example.org", without a path'
            yield Complaint(place, text, hint)


def check_proxies(way: Way, proxies: Iterable[str]) -> Iterator[Complaint]:
    """Refuse proxies that are no addresses: a trusted one may claim any sender."""
    for index, each in enumerate(proxies):
        try:
            ipaddress.ip_network(each)
        except ValueError:
            text = f"{each!r} is neither an address nor a network"
            hint = 'for example "127.0.0.1" or "10.0.0.0/8"'
            yield Complaint((*way, "trusted_proxies", index), text, hint)


def find_zone(name: str) -> tzinfo | None:
    """Find a time zone by its name; None if this machine does not know it."""
    if name == "UTC":  # known without the machine's tables, too
        return UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


def check_zone(way: Way, name: str) -> Iterator[Complaint]:
    """Check that this machine knows a time zone."""
    if find_zone(name) is None:
        hint = 'for example "UTC" or "Europe/Berlin"'
        yield Complaint(way, f"this machine knows no time zone {name!r}", hint)


RETIRED: Mapping[str, Mapping[str, str]] = {
    "AutonomousConfig": {
        "plan_lasts": "a plan that nobody has begun for an hour is out of date",
        "planner_retries": "a decision that cannot be read is asked for again twice",
    },
    "BudgetConfig": {"on_hard": "calls always end at a hard limit"},
    "CollaborationConfig": {
        "max_age": "a consultation is closed a day after its last answer",
        "max_parallel": "four agents answer a consultation at the same time",
        "max_sessions": "two agents keep the last eight consultations of a person",
    },
    "CommandsConfig": {"answer_within": "a command that looks things up has 3 seconds"},
    "ApprovalConfig": {
        "plain_words_after": "a plain yes counts a second after the question"
    },
    "CompactionConfig": {
        "retry_after": "a compaction that failed is tried again after five minutes"
    },
    "ContextConfig": {
        "max_facts": "memory.inject_limit says how many facts are shown",
        "max_summaries": "memory.summaries says how many summaries are shown",
    },
    "FetchConfig": {"max_redirects": "three redirects are followed"},
    "HeartbeatConfig": {
        "ack_chars": "HEARTBEAT_OK with up to 300 more characters says nothing"
    },
    "HiringConfig": {"max_prompt_chars": "a made agent is told 8,000 characters"},
    "HookConfig": {"restart_longest": "waits for a restart grow to a minute"},
    "McpServerConfig": {"restart_longest": "waits for a restart grow to a minute"},
    "MemorySettings": {
        "embed_batch": "32 texts are given to the embedder at once",
        "half_life_weight": "0.3 of a fact's score fades with its age",
        "hashing_dimensions": "the embedded embedder makes vectors of 256 bytes",
        "keyword_weight": "common words count for 0.3 of a score",
        "lessons": "the newest 20 lessons are shown; context.budgets bounds them, too",
        "max_notes": "one answer may hold 32 notes",
        "min_question_chars": "memory is searched for questions of 8 characters on",
        "outcomes": "the newest 15 rewards are shown; context.budgets bounds them, too",
        "sweep_every": "expired facts are looked for every hour",
        "vector_weight": "likeness of meaning counts for 0.7 of a score",
    },
    "OllamaEmbedderConfig": {"max_connections": "8 texts are embedded at once"},
    "OpenAIEmbedderConfig": {"max_connections": "8 texts are embedded at once"},
    "PresenceConfig": {"typing_every": "typing is shown again every 4 seconds"},
    "RoutingConfig": {"max_steps": "an answer has 6 steps at most"},
    "SchedulerConfig": {
        "catch_up_most": "the newest 10 missed times are made up for",
        "late_within": "what is late by less than a minute was not missed",
        "max_text": "an appointment has 2,000 characters at most",
    },
    "TracingConfig": {"max_waiting": "2,048 steps may wait to be sent"},
    "WatchdogConfig": {
        "recovered_within": "a cancelled turn has 10 seconds to end, then it is killed"
    },
    "WebhookOutConfig": {
        "at_once": "4 events are sent at the same time",
        "keep_dead_days": "events that were given up are kept for 30 days",
    },
    "WebhooksConfig": {"replay_window": "5 minutes, as Standard Webhooks recommend"},
}
"""By the type of its table and its name, why a setting is gone. Those of a platform
stand in its `Platform`."""
