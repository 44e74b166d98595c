"""What the statements of `runtime/nodes/statements.py` do, on the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime.nodes import statements as sql
from tests.nodes_simulation.server import Key, RefusedError, Run, Transaction, Work

Values = dict[str, Any]


def node_key(name: str) -> Key:
    return ("node", name)


def writer_key(name: str) -> Key:
    return ("writer", name)


def lease_key(name: str) -> Key:
    return ("lease", name)


def fence(txn: Transaction, values: Values) -> Work:
    """Lock the writer row under its number, and compare the leases, or raise."""
    found = yield from txn.update(
        [writer_key(values["node"])],
        lambda row: row["fence"] == values["fence"],
        last_group=values["group"],
    )
    if not found or not holds(txn, values):
        raise RefusedError(sql.FENCED)
    return [{}]


def holds(txn: Transaction, values: Values) -> bool:
    """Whether the node owns each lease that it claims, in that epoch."""
    for name, epoch in zip(values["names"], values["epochs"], strict=True):
        row = txn.get(lease_key(name))
        if row is None or (row["owner"], row["epoch"]) != (values["node"], epoch):
            return False
    return True


def join_node(txn: Transaction, values: Values) -> Work:
    name = values["node"]
    row = {"id": name, "incarnation": 1, "beat": 0, "state": "up", "is_drained": False}
    if (yield from txn.insert(node_key(name), row)):
        return [{"incarnation": 1}]

    def stays_drained(row: Values) -> bool:
        return bool(row["is_drained"] and values["is_again"])

    return (
        yield from txn.update(
            [node_key(name)],
            lambda _: True,
            incarnation=one_more("incarnation"),
            beat=0,
            state="up",
            is_drained=stays_drained,
        )
    )


def join_writer(txn: Transaction, values: Values) -> Work:
    name = values["node"]
    row = {"node": name, "fence": 1, "last_group": 0}
    if (yield from txn.insert(writer_key(name), row)):
        return [{"fence": 1}]
    return (
        yield from txn.update(
            [writer_key(name)], lambda _: True, fence=one_more("fence"), last_group=0
        )
    )


def one_more(column: str) -> Callable[[Values], int]:
    return lambda row: int(row[column]) + 1


def join_leases(txn: Transaction, values: Values) -> Work:
    def is_mine(row: Values) -> bool:
        return bool(row["owner"] == values["node"])

    keys = [lease_key(row["name"]) for row in txn.rows("lease") if is_mine(row)]
    return (yield from txn.update(keys, is_mine, epoch=one_more("epoch")))


def lives(values: Values) -> Callable[[Values], bool]:
    """Whether a node's row is of this life, as far as the values say what that is."""
    names = ("incarnation", "beat", "state")
    wanted = {"state": "up"} | {n: values[n] for n in names if n in values}
    return lambda row: all(row[name] == value for name, value in wanted.items())


def beat(txn: Transaction, values: Values) -> Work:
    key = node_key(values["node"])
    return (yield from txn.update([key], lives(values), beat=one_more("beat")))


def declare_fenced(txn: Transaction, values: Values) -> Work:
    key = node_key(values["node"])
    return (yield from txn.update([key], lives(values), state="fenced"))


def declare_gone(txn: Transaction, values: Values) -> Work:
    return (
        yield from txn.update([node_key(values["node"])], lives({}), state="fenced")
    )


def leave(txn: Transaction, values: Values) -> Work:
    key = node_key(values["node"])
    return (yield from txn.update([key], lives(values), state="left"))


def end_sessions(txn: Transaction, values: Values) -> Work:
    yield from ()
    row = txn.get(node_key(values["node"]))
    names = ("incarnation", "beat")
    if row is None or any(row[name] != values[name] for name in names):
        return []
    begin = values["sessions"]
    idle = [x for x in txn.server.sessions if x.name.startswith(begin) and x.is_idle]
    for session in idle:
        session.end()
    return [{"pg_terminate_backend": True} for _ in idle]


def raise_fence(txn: Transaction, values: Values) -> Work:
    key = writer_key(values["node"])
    return (yield from txn.update([key], lambda _: True, fence=one_more("fence")))


def await_writer(txn: Transaction, values: Values) -> Work:
    return (yield from txn.update([writer_key(values["node"])], lambda _: True))


def lock_life(txn: Transaction, values: Values) -> Work:
    return (yield from txn.update([node_key(values["node"])], lives(values)))


def give_leases(txn: Transaction, values: Values) -> Work:
    owners: dict[str, str] = dict(zip(values["names"], values["owners"], strict=True))

    def next_owner(row: Values) -> str:
        return owners[row["name"]]

    return (
        yield from txn.update(
            [lease_key(name) for name in owners],
            lambda row: row["owner"] == values["node"],
            owner=next_owner,
            wanted="",
            epoch=one_more("epoch"),
        )
    )


def want(txn: Transaction, values: Values) -> Work:
    names = values["names"]
    wanted: dict[str, str] = dict(zip(names, values["wanted"], strict=True))
    epochs: dict[str, int] = dict(zip(names, values["epochs"], strict=True))

    def next_owner(row: Values) -> str:
        return wanted[row["name"]]

    return (
        yield from txn.update(
            [lease_key(name) for name in names],
            lambda row: row["epoch"] == epochs[row["name"]],
            wanted=next_owner,
        )
    )


def resolve(txn: Transaction, values: Values) -> Work:
    return (
        yield from txn.update(
            [writer_key(values["node"])],
            lambda row: row["fence"] == values["fence"],
            fence=one_more("fence"),
        )
    )


def read_nodes(txn: Transaction, values: Values) -> Work:
    del values
    yield from ()
    return txn.rows("node")


def read_leases(txn: Transaction, values: Values) -> Work:
    del values
    yield from ()
    return txn.rows("lease")


MODEL: dict[str, Callable[[Transaction, Values], Work]] = {
    sql.FENCE: fence,
    sql.JOIN_NODE: join_node,
    sql.JOIN_WRITER: join_writer,
    sql.JOIN_LEASES: join_leases,
    sql.BEAT: beat,
    sql.DECLARE_FENCED: declare_fenced,
    sql.DECLARE_GONE: declare_gone,
    sql.END_SESSIONS: end_sessions,
    sql.RAISE_FENCE: raise_fence,
    sql.AWAIT_WRITER: await_writer,
    sql.LIVES: lock_life,
    sql.GIVE_LEASES: give_leases,
    sql.WANT: want,
    sql.LEAVE: leave,
    sql.RESOLVE: resolve,
    sql.READ_NODES: read_nodes,
    sql.READ_LEASES: read_leases,
}


def modelled(statement: sql.Statement) -> Run:
    """Give what a statement does on the model."""
    run = MODEL[statement.text]
    return lambda txn: run(txn, statement.values)
