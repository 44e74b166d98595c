"""The rows of conversations, as far as nodes matter to them, on the model.

Each unit is one change that a node commits for a part, an account or a singleton.
A unit that finds its rows otherwise than it needs them changes nothing.
"""

from __future__ import annotations

from tests.nodes_simulation.server import Row, Transaction, Work

LIMIT = 8
"""What may be spent."""

ACCOUNTS = 2

READ = ("inbox", "handout", "handin")
"""What an owner reads of its parts."""


def account_of(part: int) -> str:
    return f"account/{part % ACCOUNTS}"


def lease_of(before: Row | None, key: tuple[object, ...], row: Row | None) -> str:
    """Name the lease under which a row may be written; empty: any node may."""
    table = key[0]
    known = row or before or {}
    if table in {"inbox", "outbox", "handin"} and row is None and before is not None:
        return f"part/{before['part']}" if table == "handin" else "keeper"
    if table == "inbox":
        return f"part/{known['part']}" if before is not None else ""
    if table == "outbox":
        is_new = before is None
        return f"part/{known['part']}" if is_new else account_of(known["part"])
    if table in {"journal", "handout", "handed", "effect"}:
        return f"part/{known['part']}"
    if table in {"place", "slot"}:
        return str(known["lease"])
    return ""


def is_open(row: Row) -> bool:
    return row["state"] in {"accepted", "running"}


def accept(txn: Transaction, message: Row) -> Work:
    """Store a message; known: no change, which is as good."""
    key = ("inbox", message["part"], message["name"])
    row = message | {"state": "accepted", "place": 0, "epoch": 0, "settled_on": 0.0}
    row["number"] = txn.server.number(txn.session)
    yield from txn.insert(key, row)
    return [{"is_done": True}]


def claim(txn: Transaction, message: Row, epoch: int) -> Work:
    """Begin a message; the first claim gives it its place in its chat."""
    places = [
        row["place"] for row in txn.rows("inbox") if row["chat"] == message["chat"]
    ]

    def place(row: Row) -> int:
        return int(row["place"]) or max(places) + 1

    key = ("inbox", message["part"], message["name"])
    found = yield from txn.update(
        [key], is_open, state="running", epoch=epoch, place=place
    )
    return [{"is_done": bool(found)}]


def answer(txn: Transaction, message: Row, epoch: int, at: float) -> Work:
    """Settle a message, with its journal, its delivery, and what another part gets."""
    part, name = message["part"], message["name"]
    found = yield from txn.update(
        [("inbox", part, name)], is_open, state="replied", settled_on=at
    )
    if not found:
        return [{"is_done": False}]
    stream = [row for row in txn.rows("journal") if row["chat"] == message["chat"]]
    event = {"part": part, "chat": message["chat"], "name": name, "epoch": epoch}
    event |= {"sequence": len(stream) + 1, "claimed": found[0]["epoch"]}
    if not (
        yield from txn.insert(("journal", message["chat"], len(stream) + 1), event)
    ):
        return [{"is_done": False}]
    delivery = {"part": part, "name": name, "chat": message["chat"], "attempts": 0}
    delivery |= {"state": "pending", "number": txn.server.number(txn.session)}
    yield from txn.insert(("outbox", name), delivery)
    if message["note_for"] is not None:
        note = {"part": part, "part_to": message["note_for"], "cause": name}
        yield from txn.insert(("handout", part, name), note)
    return [{"is_done": True}]


def attempt(txn: Transaction, delivery: Row, number: int) -> Work:
    """Note that the platform is about to be called."""
    found = yield from txn.update(
        [("outbox", delivery["name"])],
        lambda row: row["state"] != "sent",
        state="sending",
        attempts=number,
    )
    return [{"is_done": bool(found)}]


def receive(txn: Transaction, delivery: Row) -> Work:
    """Note that the platform took it."""
    found = yield from txn.update(
        [("outbox", delivery["name"])], lambda row: row["state"] != "sent", state="sent"
    )
    return [{"is_done": bool(found)}]


def bring(txn: Transaction, note: Row, key: object) -> Work:
    """Carry a hand-over to its part, once."""
    part = note["part_to"]
    if txn.get(("handed", part, key)) is None:
        yield from txn.insert(("handin", part, key), note | {"part": part, "key": key})
    return [{"is_done": True}]


def forget(txn: Transaction, note: Row) -> Work:
    """Forget a hand-over that was carried."""
    key = ("handout", note["part"], note["cause"])
    if txn.get(key) is not None:
        yield key
        txn.put(key, None)
    return [{"is_done": True}]


def apply(txn: Transaction, note: Row) -> Work:
    """Do what a hand-over says, unless its key is known."""
    part, key = note["part"], note["key"]
    yield ("handin", part, key)
    if (yield from txn.insert(("handed", part, key), {"part": part})):
        effect = {"part": part, "cause": note["cause"]}
        yield from txn.insert(("effect", part, key), effect)
    txn.put(("handin", part, key), None)
    return [{"is_done": True}]


def spend(txn: Transaction, name: str, ident: object) -> Work:
    """Take one of what may be spent, and write it down."""
    if txn.get(("ledger", ident)) is not None:
        return [{"is_done": False}]

    def one_more(row: Row) -> int:
        return int(row["spent"]) + 1

    found = yield from txn.update(
        [("budget",)], lambda row: row["spent"] < LIMIT, spent=one_more
    )
    if found:
        yield from txn.insert(("ledger", ident), {"cause": name})
    return [{"is_done": bool(found)}]


def spend_unguarded(txn: Transaction, name: str, spent: int) -> Work:
    """Write a sum that was read before."""
    if spent >= LIMIT or txn.get(("ledger", name)) is not None:
        return [{"is_done": False}]
    yield from txn.update([("budget",)], lambda _: True, spent=spent + 1)
    yield from txn.insert(("ledger", name), {"cause": name})
    return [{"is_done": True}]


def take_in(txn: Transaction, messages: list[Row], lease: str, offset: int) -> Work:
    """Store what a poll of a platform gave, and where the next one begins."""
    for message in messages:
        yield from accept(txn, message)
    key = ("place", lease)
    row = {"lease": lease, "offset": offset}
    if not (yield from txn.insert(key, row)):
        yield from txn.update([key], lambda _: True, offset=offset)
    return [{"is_done": True}]


def fire(txn: Transaction, slot: Row, message: Row) -> Work:
    """Have an appointment heard like a message, once."""
    found = yield from txn.update(
        [("slot", slot["number"])], lambda row: not row["is_fired"], is_fired=True
    )
    if found:
        yield from accept(txn, message)
    return [{"is_done": bool(found)}]


def prune(txn: Transaction, before: float) -> Work:
    """Forget messages that were settled long ago, and with them their dedup keys."""
    for row in txn.rows("inbox"):
        if row["state"] == "replied" and row["settled_on"] < before:
            key = ("inbox", row["part"], row["name"])
            yield key
            txn.put(key, None)
    return [{"is_done": True}]
