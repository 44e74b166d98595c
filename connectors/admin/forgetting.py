"""Which rows of a store belong to a person, and what stays of each when it is erased.

Pure. Rows are seen as JSON and not as what they are elsewhere: what another release
wrote is found, too. First all rows are learnt from, because an answer says only which
message it answers; then each row is decided on.

A conversation with nobody else is erased whole. Of one with others, whose order and
numbers stay: the person's words and name, the answers to them, and every summary.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeGuard

import msgspec

from actors.memory import scopes
from actors.messages.keys import parse_key
from runtime.store.rows import AnyRow

ERASED = "[erased]"
"""What stands where words stood whose place has to stay."""

Json = dict[str, object]

SHORTEST_ID = 5
"""Characters of an id by which rows are looked for that still name it."""

TEXTS = frozenset({"asked", "said", "summary", "text", "input", "output", "resume"})
NAMES = frozenset({"sender_id", "sender_name", "name"})


class PersonTraces:
    """What is known of a person's rows.

    Args:
        accounts: all of theirs, `connector/sender id` each.
    """

    def __init__(self, accounts: Iterable[str]) -> None:
        self.accounts = frozenset(accounts)
        self._scopes = {scopes.person(each) for each in self.accounts}
        self._streams: set[str] = set()
        """Conversations with nobody else."""

        self._shared: set[str] = set()
        """Conversations with others, in which they wrote."""

        self._answers: set[str] = set()
        """Messages of others who were answered together with them."""

        self._groups: set[str] = set()
        self._gone: set[str] = set()
        """Ids of the events of conversations with nobody else."""

        self._messages: set[str] = set()
        self._causes: set[str] = set()
        """Correlation ids of their messages."""

        self._chats: set[tuple[str, str]] = set()
        """Connectors and chats in which only they write."""

        self._posts: set[tuple[str, str]] = set()
        """Connectors, and the ids of their messages in histories."""

        self._replies: dict[tuple[str, str], tuple[str, str]] = {}
        """What agents said in histories, and which message each answers."""

    def learn(self, row: AnyRow) -> None:
        """Learn from one row which other rows are the person's."""
        body = as_json(row.body)
        if row.table == "inbox" and self._is_mine(body):
            self._messages.add(row.id)
            self._causes.add(str(body.get("correlation_id", row.id)))
            if body.get("is_direct", True):
                self._chats.add(chat_of(body))
        elif row.table == "journal":
            self._learn_event(row, body)
        elif row.table == "entry" and "author" in body:
            self._learn_post(row.id.partition("/")[0], body)

    def _learn_post(self, connector: str, body: Json) -> None:
        """Learn from a message in the history of a page, or of a channel."""
        place = (connector, str(body.get("id")))
        if f"{connector}/{body['author']}" in self.accounts:
            self._posts.add(place)
        elif body.get("is_agent") or body.get("delivery"):
            self._replies[place] = (connector, str(body.get("reply_to")))

    def _learn_event(self, row: AnyRow, body: Json) -> None:
        connector, chat, sender = place_of(row.id)
        if body.get("is_group"):
            self._groups.add(row.id)
        if sender and f"{connector}/{sender}" in self.accounts:
            self._streams.add(row.id)
            self._gone |= ids_of(body)
            if row.id not in self._groups:
                self._chats.add((connector, chat))
            else:
                self._chats.discard((connector, chat))
        senders = [body, *dicts(body.get("also"))]
        mine = [x for x in senders if self._has_account(connector, x)]
        if mine:
            self._answers |= ids_of(body)
        for each in mine:
            self._shared.add(row.id)
            name = str(each.get("inbound_id", ""))
            self._messages.add(name)
            self._causes.add(name)

    def left_of(self, row: AnyRow) -> bytes | None:
        """Give what stays of a row: all of it (the same bytes), a part, or None."""
        body = as_json(row.body)
        if row.table == "journal":
            return self._left_of_event(row, body)
        if row.table == "record":
            return self._left_of_record(row, body)
        if row.table == "entry":
            return self._left_of_entry(row, body)
        is_theirs = {
            "inbox": row.id in self._messages,
            "outbox": str(body.get("correlation_id")) in self._causes
            or chat_of(body) in self._chats,
            "snapshot": row.id in self._streams | self._shared,
            "fact": row.table == "fact" and self._is_fact(row, body),
        }
        return None if is_theirs[row.table] else row.body

    def _left_of_event(self, row: AnyRow, body: Json) -> bytes | None:
        if row.id in self._streams or row.key in self._messages - {""}:
            return None
        if row.id not in self._shared:
            return row.body
        if body.get("summary") or ids_of(body) & self._messages:
            return written(erased(body))
        return row.body

    def _left_of_record(self, row: AnyRow, body: Json) -> bytes | None:
        if row.id in self._streams or row.id.partition("#")[0] in self._gone:
            return None
        connector = str(body.get("channel", body.get("connector", "")))
        if self._has_account(connector, body):
            return written(blank(body))
        if body.get("conversation") in self._shared and body.get("summary"):
            return written({**body, "summary": ERASED})
        if row.kind == "audit" and row.id.partition("#")[0] in self._answers:
            return written({**body, "output": ""}) if body.get("output") else row.body
        who = body.get("who")  # of a call in the ledger, whose cost stays
        if is_json(who) and who.get("user") in self.accounts:
            return written({**body, "who": {**who, "user": ""}})
        return row.body

    def _left_of_entry(self, row: AnyRow, body: Json) -> bytes | None:
        scope = row.id.partition("/")[2]
        is_alias = row.kind == "alias" and row.body.decode() in self.accounts
        is_theirs = self._is_mine(body) or str(body.get("person")) in self.accounts
        if row.id in self.accounts or is_alias or is_theirs or scope in self._scopes:
            return None
        if self._is_history(row, body):
            return None
        if row.kind == "chat-people" and self.accounts.intersection(body):
            return written({k: v for k, v in body.items() if k not in self.accounts})
        return row.body

    def _is_history(self, row: AnyRow, body: Json) -> bool:
        """Whether a connector keeps it for showing: their words, or an answer to them.

        Of a chat in which only they write that is all of it.
        """
        connector, _, name = row.id.partition("/")
        if f"{connector}/{body.get('user')}" in self.accounts:
            return True
        owner, _, chat = row.owner.partition("/")
        chats = {(owner, chat), (connector, name), (connector, str(body.get("chat")))}
        # The row that says where a message stands has the message's id as its own.
        posts = {(connector, name), (connector, str(body.get("id")))}
        posts |= {self._replies[each] for each in posts if each in self._replies}
        is_answer = str(body.get("correlation_id")) in self._causes
        return is_answer or bool(chats & self._chats or posts & self._posts)

    def _is_fact(self, row: AnyRow, body: Json) -> bool:
        source = as_json(str(body.get("provenance", "")).encode())
        account = f"{source.get('connector')}/{source.get('sender')}"
        return (
            row.owner in self._scopes
            or account in self.accounts
            or self._is_member(row.owner)
        )

    def _is_member(self, scope: str) -> bool:
        """Whether a scope is this person's in a group; see `scopes.chat`."""
        parts = scope.removeprefix("chat:").split("/")
        if not scope.startswith("chat:") or len(parts) != 4:
            return False
        connector, *_, sender = (x.replace("~1", "/").replace("~0", "~") for x in parts)
        return f"{connector}/{sender}" in self.accounts

    def _is_mine(self, body: Json) -> bool:
        address = body.get("address")
        connector = str(address.get("connector")) if is_json(address) else ""
        return self._has_account(connector, body)

    def _has_account(self, connector: str, body: Json) -> bool:
        return f"{connector}/{body.get('sender_id')}" in self.accounts

    def names(self, row: AnyRow) -> bool:
        """Whether a row still names one of the accounts, as far as can be seen."""
        ids = {account.partition("/")[2] for account in self.accounts}
        wanted = self.accounts | {each for each in ids if len(each) >= SHORTEST_ID}
        found = {row.id, row.owner, *texts_in(as_json(row.body))}
        return not wanted.isdisjoint(found) or any(map(self._is_in, found))

    def _is_in(self, text: str) -> bool:
        """Whether a text has an account in it, as `forget anna person:chat/sam`."""
        return any(
            re.search(rf"(?<![\w.-]){re.escape(each)}(?![\w.-])", text)
            for each in self.accounts
            if each in text
        )


class FoundRows:
    """Counts rows by what they are, as people call it."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def add(self, row: AnyRow) -> None:
        """Count a row."""
        name = NAMES_OF_TABLES[row.table]
        self.counts[
            f"{row.kind} {name}" if row.table in {"record", "entry"} else name
        ] += 1


NAMES_OF_TABLES: Mapping[str, str] = {
    "inbox": "message",
    "journal": "event",
    "outbox": "delivery",
    "snapshot": "snapshot",
    "record": "record",
    "entry": "entry",
    "fact": "fact",
}


def as_json(body: bytes) -> Json:
    """Read a row's body; what is no JSON object is an empty one."""
    try:
        found: object = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}
    return found if is_json(found) else {}


def is_json(value: object) -> TypeGuard[Json]:
    """Tell whether a value is a JSON object."""
    return isinstance(value, dict)


def dicts(value: object) -> list[Json]:
    """Give the objects of a JSON list."""
    items: list[object] = list(value) if isinstance(value, list) else []  # pyright: ignore[reportUnknownArgumentType]
    return [each for each in items if is_json(each)]


def ids_of(body: Json) -> set[str]:
    """Give the ids of an event and of the messages that it answers."""
    named = (body.get("id"), body.get("inbound_id"))
    also = (each.get("inbound_id") for each in dicts(body.get("also")))
    return {each for each in (*named, *also) if isinstance(each, str)}


def chat_of(body: Json) -> tuple[str, str]:
    """Give connector and chat of a message or a delivery."""
    address = body.get("address")
    if not is_json(address):
        return "", ""
    return str(address.get("connector", "")), str(address.get("chat", ""))


def place_of(stream: str) -> tuple[str, str, str]:
    """Give connector, chat and sender of a conversation; empty: it is none."""
    try:
        key = parse_key(stream)
    except ValueError:
        return "", "", ""
    return key.connector, key.chat, key.sender


def erased(body: Json) -> Json:
    """Take words and names out of an event whose place has to stay.

    The number of its lines stays, which later events and counters go by.
    """
    kept = {
        name: (ERASED if name == "summary" and value else value)
        for name, value in body.items()
        if name not in (TEXTS | NAMES) - {"summary"}
    }
    if "text" in body:
        kept["text"] = ERASED
    if "lines" in kept:
        kept["lines"] = [
            {"role": "user" if x.get("role") == "user" else "assistant", "text": ERASED}
            for x in dicts(kept["lines"])
        ]
    if "also" in kept:
        kept["also"] = [
            {**erased(each), "asked": ERASED} for each in dicts(kept["also"])
        ]
    return kept


def blank(body: Json) -> Json:
    """Take words and names out of a record, whose times and numbers stay."""
    return {
        name: "" if name in TEXTS | NAMES and isinstance(value, str) else value
        for name, value in body.items()
    }


def written(body: Json) -> bytes:
    """Write a body."""
    return msgspec.json.encode(body)


def texts_in(value: object) -> Iterator[str]:
    """Give all texts in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif is_json(value):
        for name, each in value.items():
            yield name
            yield from texts_in(each)
    elif isinstance(value, list):
        items: list[object] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        for each in items:
            yield from texts_in(each)
