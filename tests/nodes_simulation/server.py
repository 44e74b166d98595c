"""A model of one PostgreSQL server: sessions, row locks, READ COMMITTED, commit points.

It has no time: who drives it says when a statement arrives and when a commit is
durable. The schedules of `test_schedules.py` compare it with the real server, step by
step; the simulation drives it in virtual time.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Generator
from typing import Any

Row = dict[str, Any]
Key = tuple[Any, ...]
"""The table, then the primary key."""

Answer = list[Row]
Work = Generator[Key, None, Answer]
"""A statement under way; yields the key of each row that it wants to lock."""

Run = Callable[["Transaction"], Work]


class RefusedError(Exception):
    """The server's answer to a statement that failed.

    Args:
        code: its SQLSTATE.
    """

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


Reply = Callable[[Answer | RefusedError], object]


class Transaction:
    """What one transaction has written and locked, and what it sees."""

    def __init__(self, server: Server, session: Session) -> None:
        self.server = server
        self.session = session
        self.writes: dict[Key, Row | None] = {}
        self.locks: list[Key] = []
        self.claim: Row = {}
        """What its client believed of itself; for who checks."""

        self.units: dict[int, bool] = {}
        """The units of work in it, and whether each did what it was to do."""

        self.has_failed = False
        self.is_implicit = False
        """Whether it is one statement without `begin`."""

    def get(self, key: Key) -> Row | None:
        """Give the newest version of a row that it may see."""
        if key in self.writes:
            return self.writes[key]
        return self.server.tables[key[0]].get(key)

    def rows(self, table: str) -> list[Row]:
        """Give all rows that a statement sees which begins now."""
        own = {key: row for key, row in self.writes.items() if key[0] == table}
        if not own:
            return [*self.server.tables[table].values()]
        merged = self.server.tables[table] | own
        return [row for row in merged.values() if row is not None]

    def put(self, key: Key, row: Row | None) -> None:
        """Write a row that is locked; None deletes it."""
        self.writes[key] = row

    def update(
        self, keys: list[Key], where: Callable[[Row], bool], **changes: Any
    ) -> Work:
        """Lock and change rows; whose condition no longer holds is left alone."""
        changed: Answer = []
        for key in keys:
            seen = self.get(key)
            if seen is None or not where(seen):
                continue
            yield key
            row = self.get(key)
            if row is None or not where(row):
                self.server.unlock(key, self)
            else:
                new = row | {
                    name: value(row) if callable(value) else value
                    for name, value in changes.items()
                }
                self.put(key, new)
                changed.append(new)
        return changed

    def insert(self, key: Key, row: Row) -> Generator[Key, None, bool]:
        """Add a row; False if there is one, also of a transaction that just ended."""
        yield key
        if self.get(key) is not None:
            self.server.unlock(key, self)
            return False
        self.put(key, row)
        return True


class Session:
    """One connection, as the server sees it.

    Args:
        server: its server.
        name: its `application_name`.
    """

    def __init__(self, server: Server, name: str) -> None:
        self.server = server
        self.name = name
        self.queue: deque[tuple[Run | str, Reply]] = deque()
        self.transaction: Transaction | None = None
        self.waits_for: Key | None = None
        self.waits = 0
        """How often it has waited for a lock."""

        self.is_committing = False
        self.is_open = True
        self.is_closing = False
        """Whether its client is gone; what it sent before is still carried out."""

        self.is_in_pipeline = False
        """Whether its client has not sent all of what it sends at once: the server
        then counts the session as active, and no time-out ends it."""

        self.on_end: Callable[[], object] = lambda: None
        self.numbers: deque[int] = deque()
        """What is left of the numbers that it drew beforehand."""

        self._work: Work | None = None
        self._reply: Reply = lambda _: None
        self._answer: Answer | RefusedError = []

    @property
    def is_idle(self) -> bool:
        """Whether it waits for its client (`ClientRead`)."""
        return self._work is None and not self.is_committing and not self.queue

    def send(self, what: Run | str, reply: Reply) -> None:
        """Take in a statement, `begin`, `commit` or `rollback`; answer when done."""
        if self.is_open:
            self.queue.append((what, reply))
            self.pump()

    def pump(self) -> None:
        """Go on with what waits here, as far as that goes."""
        while self.queue and self._work is None and not self.is_committing:
            what, self._reply = self.queue.popleft()
            if isinstance(what, str):
                self._control(what)
            elif self.transaction is None:
                self.transaction = Transaction(self.server, self)
                self.transaction.is_implicit = True
                self._begin(what)
            else:
                self._begin(what)
        if self.is_idle and self.is_open:
            if self.is_closing:
                self.end()
            elif self.transaction is not None and not self.is_in_pipeline:
                self.server.on_idle(self)

    def close(self) -> None:
        """Take note that the client is gone."""
        self.is_closing = True
        self.pump()

    def _control(self, what: str) -> None:
        if what == "begin":
            self.transaction = Transaction(self.server, self)
            self._reply([])
        elif self.transaction is None:
            self._reply([])
        elif what == "rollback" or self.transaction.has_failed:
            refused = self.transaction.has_failed and what == "commit"
            self._give_up()
            self._reply(RefusedError("rollback") if refused else [])
        else:
            self.is_committing = True
            self.server.flush(self)

    def _begin(self, run: Run) -> None:
        transaction = self.transaction
        assert transaction is not None
        if transaction.has_failed:
            self._reply(RefusedError("25P02"))
            return
        self._work = run(transaction)
        self.advance()

    def advance(self, error: RefusedError | None = None) -> None:
        """Go on with the statement under way, which has what it waited for."""
        self.waits_for = None
        work, transaction = self._work, self.transaction
        assert work is not None
        assert transaction is not None
        answer: Answer | RefusedError
        try:
            key = next(work) if error is None else work.throw(error)
            while self.server.lock(key, self):
                key = next(work)
        except StopIteration as ended:
            answer = ended.value
        except RefusedError as refused:
            transaction.has_failed = True
            transaction.writes.clear()
            answer = refused
        else:
            self.waits_for = key
            self.waits += 1
            self.server.waiting[key].append(self)
            self.server.on_wait(self)
            return
        self._work = None
        if transaction.has_failed:
            # What it has locked is free at once, not when its client has heard of it.
            self.server.release(transaction)
        self._answered(transaction, answer)
        self.pump()

    def _answered(
        self, transaction: Transaction, answer: Answer | RefusedError
    ) -> None:
        if not transaction.is_implicit:
            self._reply(answer)
        elif transaction.writes and not transaction.has_failed:
            self._answer = answer
            self.is_committing = True
            self.server.flush(self)
        else:
            self._give_up()
            self._reply(answer)

    def time_out(self) -> None:
        """Give up waiting for a lock (`lock_timeout`)."""
        if self.waits_for is not None:
            self.server.waiting[self.waits_for].remove(self)
            self.advance(RefusedError("55P03"))

    def committed(self) -> None:
        """Make the transaction seen, answer, and go on."""
        transaction = self.transaction
        assert transaction is not None
        self.server.publish(transaction)
        self.transaction = None
        self.is_committing = False
        self.server.release(transaction)
        answer, self._answer = self._answer, []
        self._reply(answer)
        self.pump()

    def end(self) -> None:
        """End it: what is not committed is rolled back; nobody is answered."""
        if not self.is_open:
            return
        self.is_open = False
        self.server.sessions.remove(self)
        self.queue.clear()
        if self.waits_for is not None:
            self.server.waiting[self.waits_for].remove(self)
            self.waits_for = None
        self._work = None
        self._reply = lambda _: None
        if self.is_committing:
            self.committed()
        else:
            self._give_up()
        self.on_end()

    def forget(self) -> None:
        """Drop all that it would still do: its server has crashed."""
        self.queue.clear()
        self._work = None
        if self.waits_for is not None:
            self.server.waiting[self.waits_for].remove(self)
            self.waits_for = None

    def _give_up(self) -> None:
        transaction, self.transaction = self.transaction, None
        self.is_committing = False
        if transaction is not None:
            self.server.release(transaction)


class Server:
    """Rows, locks and sessions.

    Attributes:
        flush: called when a session commits; calls `Session.committed` when the
            commit is durable.
        on_wait: called when a session begins to wait for a lock.
        on_idle: called when a session waits for its client with an open transaction.
        on_publish: called with each transaction as it becomes seen.
        cache: how many numbers a session draws at once.
    """

    def __init__(self) -> None:
        self.tables: defaultdict[str, dict[Key, Row]] = defaultdict(dict)
        self.sessions: list[Session] = []
        self.waiting: defaultdict[Key, deque[Session]] = defaultdict(deque)
        self.flush: Callable[[Session], object] = Session.committed
        self.on_wait: Callable[[Session], object] = lambda _: None
        self.on_idle: Callable[[Session], object] = lambda _: None
        self.on_publish: Callable[[Transaction], object] = lambda _: None
        self.cache = 1
        self._locks: dict[Key, Session] = {}
        self._drawn = 0

    def connect(self, name: str) -> Session:
        """Open a session."""
        session = Session(self, name)
        self.sessions.append(session)
        return session

    def crash(self) -> None:
        """End all sessions; what waits for nothing but being seen is recovered."""
        for session in self.sessions:
            session.forget()
        for session in [*self.sessions]:
            session.end()

    def number(self, session: Session) -> int:
        """Draw a number of a sequence; who draws later has the higher one (cache 1)."""
        if not session.numbers:
            first = self._drawn + 1
            self._drawn += self.cache
            session.numbers.extend(range(first, first + self.cache))
        return session.numbers.popleft()

    def lock(self, key: Key, session: Session) -> bool:
        """Lock a row, or tell that another session holds it."""
        owner = self._locks.setdefault(key, session)
        if owner is not session:
            return False
        transaction = session.transaction
        assert transaction is not None
        if key not in transaction.locks:
            transaction.locks.append(key)
        return True

    def publish(self, transaction: Transaction) -> None:
        """Make what a transaction wrote seen by all statements that begin now."""
        self.on_publish(transaction)
        for key, row in transaction.writes.items():
            if row is None:
                self.tables[key[0]].pop(key, None)
            else:
                self.tables[key[0]][key] = row

    def release(self, transaction: Transaction) -> None:
        """Give up a transaction's locks; who waits for one goes on."""
        locks, transaction.locks = transaction.locks, []
        woken = [self._pass_on(key) for key in locks]
        for session in woken:
            if session is not None:
                session.advance()

    def unlock(self, key: Key, transaction: Transaction) -> None:
        """Give up one lock, under which nothing was written."""
        if key not in transaction.writes:
            transaction.locks.remove(key)
            if session := self._pass_on(key):
                session.advance()

    def _pass_on(self, key: Key) -> Session | None:
        del self._locks[key]
        if not self.waiting[key]:
            return None
        session = self.waiting[key].popleft()
        self.lock(key, session)
        return session
