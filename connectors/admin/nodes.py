"""All nodes of a company, as operators see them, and how one of them asks the others.

Each node answers for what runs in its own process: its actors, whether it is ready,
what waits for an approval there. `NodeCircle` asks all others at once, each under one
deadline; a node that does not answer is named with the reason, never left out. What is
asked goes over the ports at which nodes pass requests on (`connectors.web.peers`), or
over the admin address, and is sealed with the key that lies beside the database.
"""

from __future__ import annotations

import hashlib
import hmac
import socket
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, TypeVar

import msgspec
import trio
from msgspec import field

from actors.approvals.board import DecideQuestion, ReadQuestions
from actors.approvals.permissions import OpenApproval
from actors.models.limiter import IsWorking
from actors.services import NodesSaid
from connectors.config.checks import is_loopback
from runtime.errors import MisuseError
from runtime.nodes.rows import ACCOUNT, COMPANY, PART, LeaseRow

if TYPE_CHECKING:
    import httpx

    from runtime.postgresql.nodes import KnownNode

RUNS, STANDS_BY = "runs the company", "stands by"
GONE, ENDED = "is gone", "has ended"
"""States of a node that need to be known elsewhere."""

PATH = "/node"
"""Where a node answers the others."""

QUESTION = "x-callboard-question"
"""Header of a question: the node that is asked, and the seal."""

COMMAND_WITHIN = 3.0
"""Seconds that another node has to answer a command."""

PAGE_WITHIN = 1.0
"""Seconds that another node has to answer the page, which asks again."""

MOST_BYTES = 4_194_304
"""Longest answer that is read."""

EVERYWHERE = ("", "0.0.0.0", "::")  # noqa: S104  compared, not listened on

T = TypeVar("T")


class ListedNode(msgspec.Struct, frozen=True):
    """One node, as listed."""

    name: str
    state: str
    """`runs the company`, `works on its parts`, `stands by`, `is drained`, or why none
    of these."""

    parts: int
    """How many of the 256 parts of all shared chats it works on."""

    connectors: tuple[str, ...]
    """The connectors that it runs and no other node does."""

    machine: str
    process: int
    address: str
    release: str


def owner_of(leases: Iterable[LeaseRow]) -> str:
    """Name the node that runs the company; empty: none does."""
    return next((row.owner for row in leases if row.name == COMPANY), "")


def parts_of(leases: Iterable[LeaseRow], node: str) -> int:
    """Count the parts that a node works on."""
    return sum(row.owner == node and row.name.startswith(PART) for row in leases)


def connectors_of(leases: Iterable[LeaseRow], node: str) -> tuple[str, ...]:
    """Name the connectors that a node runs of those with a lease of their own."""
    mine = [row.name for row in leases if row.owner == node]
    return tuple(sorted(x.removeprefix(ACCOUNT) for x in mine if x.startswith(ACCOUNT)))


def state_of(node: KnownNode, owner: str, *, has_work: bool) -> str:
    """Say what a node does.

    Args:
        owner: the one that runs the company.
        has_work: whether it has parts or connectors.
    """
    if not node.is_connected:
        return ENDED if node.state == "left" else GONE
    if node.id == owner:
        return RUNS
    if node.state != "up":
        return "is to join again"
    if node.is_drained:
        return "gives its work away" if has_work else "is drained"
    return "works on its parts" if has_work else STANDS_BY


def described(
    node: KnownNode, leases: Sequence[LeaseRow], rest: Sequence[str] = ()
) -> ListedNode:
    """Put together what is listed of a node.

    Args:
        rest: the connectors that the node has which runs the company.
    """
    owner = owner_of(leases)
    if node.card.shares_work is False:  # what it has was left from when work was shared
        leases = ()
    parts, connectors = parts_of(leases, node.id), connectors_of(leases, node.id)
    state = state_of(node, owner, has_work=bool(parts or connectors))
    return ListedNode(
        name=node.id,
        state=state,
        parts=parts,
        connectors=tuple(sorted({*connectors, *rest})) if state == RUNS else connectors,
        machine=node.card.host,
        process=node.card.process,
        address=node.card.address,
        release=node.card.release,
    )


# --- what is asked, and what a node answers -------------------------------------------


class ShowTree(msgspec.Struct, frozen=True, tag=True):
    """Asked for the actor tree: `connectors.admin.tree.Forest`."""

    top: str = ""
    past: str = ""


class ReadReport(msgspec.Struct, frozen=True, tag=True):
    """Asked how it is doing: `NodeReport`."""


class ReadActors(msgspec.Struct, frozen=True, tag=True):
    """Asked for what the page's list of actors shows of it: values of its template."""

    query: dict[str, str]


class ActByHand(msgspec.Struct, frozen=True, tag=True):
    """Asked to do what somebody wants who is logged in at the page: a text, or 409."""

    action: str
    """As `actors/kill`: the view and its action."""

    form: dict[str, str]
    person: str
    connector: str
    once: str = field(default_factory=partial(token_hex, 16))
    """No other wish has it: a node that has it already does nothing more."""


NodeAsked = ReadQuestions | DecideQuestion | IsWorking
"""What actors ask; see `Duties.ask`."""

NodeQuestion = ShowTree | ReadReport | ReadActors | ActByHand | NodeAsked


class Account(msgspec.Struct, frozen=True):
    """The state of a connector."""

    name: str
    kind: str
    state: str
    restarts: int
    messages: int
    """Accepted since the start."""

    last_end: str


class NodeReport(msgspec.Struct, frozen=True):
    """How a node is doing."""

    reasons: tuple[str, ...]
    """Why messages cannot be answered there; empty: they can."""

    actors: int
    turns: int
    """Answers that are being made."""

    cost: float
    """Dollars since it started."""

    accounts: tuple[Account, ...]
    """The connectors that run there."""

    approvals: tuple[tuple[OpenApproval, str], ...] = ()
    """Tool calls that wait, each with the id of the delivery that asks for it."""


class NodeReply(msgspec.Struct, frozen=True):
    """What another node said to a question."""

    node: ListedNode
    why: str = ""
    """Why it did not do or say what was asked; empty: it did."""

    is_refused: bool = False
    """Whether it answered, and `why` are its words."""

    body: bytes = b""

    def read(self, type_: type[T]) -> T | None:
        """Decode the answer; None: there is none, or another release wrote it."""
        try:
            return None if self.why else msgspec.json.decode(self.body, type=type_)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None


class RefusalText(msgspec.Struct):
    """What is read of an error."""

    message: str = ""


class Refused(msgspec.Struct):
    """What is read of a refusal, as `connectors.web.server` writes it."""

    error: RefusalText


def seal_of(key: bytes, node: str, body: bytes) -> str:
    """Give what only a node or an operator can give for a question to a node.

    Args:
        key: see `connectors.files.receipt_key`.
    """
    text = b"ask " + node.encode() + b" " + body
    return hmac.new(key, text, hashlib.sha256).hexdigest()


def is_sealed(key: bytes, node: str, body: bytes, seal: str) -> bool:
    """Whether a question to a node comes from one that has the key."""
    return hmac.compare_digest(seal_of(key, node, body).encode(), seal.encode())


# --- asking ---------------------------------------------------------------------------


class NodeWay(msgspec.Struct, frozen=True):
    """A node, and where it can be asked."""

    listed: ListedNode
    places: tuple[tuple[str, int], ...]
    """Host and port, the best first."""

    has_actors: bool
    """Whether a company runs in its process."""


def ways_to(
    nodes: Iterable[KnownNode],
    leases: Sequence[LeaseRow],
    servers: Iterable[str],
    rest: Sequence[str] = (),
) -> tuple[NodeWay, ...]:
    """Say where each node can be asked.

    Args:
        servers: the connectors of kind `http`.
        rest: see `described`.
    """
    owner, here = owner_of(leases), socket.gethostname()
    found: list[NodeWay] = []
    for node in nodes:
        listed, card = described(node, leases, rest), node.card
        places = [(card.address, card.doors[x]) for x in servers if x in card.doors]
        places = [place for place in places if place[0] and place[1]]
        if card.admin is not None and card.admin[1]:
            host, port = card.admin
            host = card.address or host if host in EVERYWHERE else host
            if host not in EVERYWHERE and (card.host == here or not is_loopback(host)):
                places.append((host, port))
        is_alive = listed.state not in {GONE, ENDED}
        has_actors = is_alive and (card.shares_work is not False or node.id == owner)
        found.append(NodeWay(listed, tuple(places), has_actors))
    return tuple(found)


NO_ACTORS = "no actors run there"
NO_WAY = (
    "cannot be asked: it has no port that other nodes reach. Give it [nodes] address"
    ' and a connector of kind "http", or an [admin] host that they reach'
)


class NodeCircle:
    """Asks other nodes of a company.

    Args:
        name: the node that asks; empty: it is none.
        key: see `connectors.files.receipt_key`.
        ways: gives all nodes.
    """

    def __init__(
        self, name: str, key: bytes, ways: Callable[[], Sequence[NodeWay]]
    ) -> None:
        self.name = name
        self.ways = ways
        self._key = key

    def others(self) -> list[NodeWay]:
        """Give all other nodes in whose process a company runs."""
        return [x for x in self.ways() if x.has_actors and x.listed.name != self.name]

    async def ask_others(self, question: NodeAsked) -> NodesSaid:
        """Ask all other nodes what an actor wants to know; see `Duties.ask`."""
        replies = await self.ask(question, self.others(), COMMAND_WITHIN)
        return NodesSaid(
            [each.body for each in replies if not each.why],
            [
                f"Node {each.node.name}: {each.why}."
                for each in replies
                if each.why and not each.is_refused
            ],
        )

    async def ask(
        self, question: NodeQuestion, ways: Iterable[NodeWay], within: float
    ) -> list[NodeReply]:
        """Ask some nodes at once; gives their replies in the order of `ways`.

        Args:
            within: seconds that each has.
        """
        asked = list(ways)
        if not asked:
            return []
        import httpx  # noqa: PLC0415  a server that asks nobody needs none

        body = msgspec.json.encode(question)
        found: dict[str, NodeReply] = {}

        async def ask(client: httpx.AsyncClient, way: NodeWay) -> None:
            found[way.listed.name] = await self._ask(client, way, body, within)

        async with (
            httpx.AsyncClient(trust_env=False, timeout=None, verify=False) as client,  # noqa: S501, S113  plain HTTP, under a deadline of ours
            trio.open_nursery() as nursery,
        ):
            for way in asked:
                nursery.start_soon(ask, client, way)
        return [found[way.listed.name] for way in asked]

    async def _ask(
        self, client: httpx.AsyncClient, way: NodeWay, body: bytes, within: float
    ) -> NodeReply:
        import httpx  # noqa: PLC0415  as in `ask`

        node = way.listed
        if not way.has_actors:
            return NodeReply(node, NO_ACTORS)
        if not way.places:
            return NodeReply(node, NO_WAY)
        why = ""
        with trio.move_on_after(within):
            for place in way.places:
                try:
                    return await self._ask_at(client, place, node, body)
                except (httpx.RequestError, httpx.InvalidURL, MisuseError) as error:
                    host, port = place
                    told = str(error) or type(error).__name__
                    why = why or f"does not answer at {host}:{port}: {told}"
            return NodeReply(node, why)
        return NodeReply(node, why or f"did not answer within {within:g} s")

    async def _ask_at(
        self,
        client: httpx.AsyncClient,
        place: tuple[str, int],
        node: ListedNode,
        body: bytes,
    ) -> NodeReply:
        """Ask at one address.

        Raises:
            httpx.RequestError: nobody answers there.
            httpx.InvalidURL: the host is no name of one.
            MisuseError: another program, or another node, does.
        """
        host, port = place
        name = f"[{host}]" if ":" in host else host
        url = f"http://{name}:{port}{PATH}"
        seal = f"{node.name} {seal_of(self._key, node.name, body)}"
        headers = {QUESTION: seal, "content-type": "application/json"}
        request = client.build_request("POST", url, content=body, headers=headers)
        response = await client.send(request, stream=True)
        try:
            answer = bytearray()
            async for part in response.aiter_bytes():
                answer += part
                if len(answer) > MOST_BYTES:
                    raise MisuseError(f"its answer is longer than {MOST_BYTES} bytes")
        finally:
            with trio.CancelScope(shield=True):
                await response.aclose()
        if response.is_success:
            return NodeReply(node, body=bytes(answer))
        why = refusal_in(bytes(answer))
        if response.status_code in REFUSALS and why:
            return NodeReply(node, why, is_refused=True)
        raise MisuseError(f"HTTP {response.status_code} {why}".rstrip())


REFUSALS = frozenset({400, 404, 409})
"""Status of an answer of the node that was meant, which did not do it."""


def refusal_in(body: bytes) -> str:
    """Give the words of a refusal; empty: it is none of ours."""
    try:
        return msgspec.json.decode(body, type=Refused).error.message
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""


def unreadable(node: ListedNode, own: str) -> str:
    """Say why an answer cannot be read: another release may have written it."""
    if node.release and node.release != own:
        return f"runs release {node.release}, and its answer cannot be read by {own}"
    return "its answer cannot be read"
