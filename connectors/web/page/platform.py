"""What the web page is to the rest of the program: settings and checks."""

import importlib.util
from collections.abc import Iterator, Mapping
from typing import Annotated

from msgspec import Meta, Struct, field

from actors.config.values import Count, Name
from actors.rules.prompt.texts import MEDIA_MARKS, ReplyStyle
from actors.rules.text.globs import is_wild
from connectors.chat.platforms import Platform
from connectors.config.app import AppConfig, ServerConfig
from connectors.config.checks import ORIGIN, Way, check_proxies, is_loopback, unknown
from runtime.config.loader import Complaint


class PageRoomConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """One room of the page, in which everybody reads everything."""

    title: str = ""
    """What it is called on the page; empty: its name."""

    agents: tuple[str, ...] = ("*",)
    """Who is in it: names of agents, or patterns."""


class PageConfig(ServerConfig, frozen=True, kw_only=True, tag="page"):
    """The web page: chat with the agents, and a look at all that runs."""

    host: str = "127.0.0.1"
    """Address to listen on; another than this machine's own needs `origin`."""

    port: Annotated[int, Meta(ge=0, le=65_535)] = 8081

    origin: str = ""
    """Under which address a proxy with a certificate shows the page:
    `https://callboard.example.org`. Empty: it is used on this machine."""

    people: Annotated[tuple[Name, ...], Meta(min_length=1)] = ("operator",)
    """Who may log in, by links of `callboard login`; the first unless told otherwise.
    Each counts as an owner: whoever is let in sees and stops everything."""

    rooms: dict[Name, PageRoomConfig] = field(
        default_factory=lambda: {"lobby": PageRoomConfig()}
    )
    """Rooms to write in, beside a chat with each agent alone."""

    login_for: Annotated[float, Meta(ge=30, le=86_400)] = 600.0
    """Seconds that a link for logging in holds, once."""

    session_hours: Annotated[float, Meta(gt=0, le=8_760)] = 168.0
    """Hours after which a browser has to log in again."""

    max_sessions: Annotated[int, Meta(ge=1, le=1_000)] = 20
    """Browsers logged in at once; of more, the one that came first is logged out."""

    max_streams: Annotated[int, Meta(ge=1, le=100)] = 4
    """Tabs of one browser that are kept up to date; of more, the oldest waits until it
    is looked at again. Browsers open six connections to one server at most."""

    keep_messages: Annotated[int, Meta(ge=100, le=1_000_000)] = 10_000
    """Messages kept of one chat; older ones are forgotten."""

    keep_days: Annotated[float, Meta(gt=0, le=36_500)] = 365.0
    """Days a message is kept."""

    max_file_bytes: Count = 10_485_760
    """Largest file that a person can send, in bytes."""

    max_connections: Count = 256

    retry_failures: bool = True
    """Whether a turn that failed is begun again after a while, by `[retries]`."""


DRAWS = "jinja2"


def check(mine: Mapping[str, PageConfig], app: AppConfig) -> Iterator[Complaint]:
    """Check every connector of this kind."""
    for name, connector in mine.items():
        way: Way = ("connectors", name)
        yield from check_package(way, DRAWS)
        yield from check_door(way, connector)
        yield from check_proxies(way, connector.trusted_proxies)
        for room, config in connector.rooms.items():
            for index, agent in enumerate(config.agents):
                if not is_wild(agent):
                    place = (*way, "rooms", room, "agents", index)
                    yield from unknown(place, "agent", agent, app.agents)
            if not config.agents:
                place = (*way, "rooms", room, "agents")
                yield Complaint(place, "nobody is in this room", 'agents = ["*"]')


def check_package(way: Way, name: str) -> Iterator[Complaint]:
    """Complain of a package that came with a newer release and is not there yet."""
    if importlib.util.find_spec(name) is None:
        text = f"the package {name!r}, which draws the page, is not installed"
        yield Complaint(way, text, f"pip install {name}, or install Callboard again")


def check_door(way: Way, page: PageConfig) -> Iterator[Complaint]:
    """Refuse a page that others can reach without a certificate."""
    origin = page.origin
    if origin and not ORIGIN.fullmatch(origin):
        hint = 'write it as "https://callboard.example.org", without a path'
        yield Complaint((*way, "origin"), f"{origin!r} is no origin", hint)
    elif not is_loopback(page.host) and not origin.startswith("https:"):
        text = f"whoever can listen on the way to {page.host!r} could use your session"
        hint = 'host = "127.0.0.1", or a proxy with a certificate, named by origin'
        yield Complaint((*way, "host"), text, hint)


PLATFORM = Platform(
    package="connectors.web.page",
    config=PageConfig,
    check=check,
    has_doctor=False,
    extra="web",
    reply_style=ReplyStyle(
        "You write on a web page. Markdown is shown, with tables and code.", MEDIA_MARKS
    ),
    owners=lambda config: config.people,
)
