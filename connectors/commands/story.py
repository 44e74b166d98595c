"""What happened in a conversation, told event by event from its journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.history import Deferred, Exchanged
from actors.rules.turn import ModelReplied, ToolReturned
from connectors.commands.job import read_inbound
from connectors.commands.printing import moment
from connectors.commands.scene import Call, Scene, delivery_scene
from runtime.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from actors.messages import Inbound
    from runtime.rows import StoredEvent
    from runtime.sqlite_browse import Browser

ENDS = {"replied": "answered", "dead": "failed"}
"""What the other states of an exchange are called."""


class Storyteller:
    """Tells the events of one conversation, given in the order of the journal.

    Args:
        browser: where messages and deliveries are looked up; of those settled more
            than eight days ago only the journal knows.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        # Of the messages that are not answered yet, so it stays small.
        self._open: dict[str, Inbound | None] = {}
        self._tools: dict[str, str] = {}

    def tell(self, event: StoredEvent) -> Iterator[Scene]:
        """Tell one event, and what belongs to it."""
        try:
            match event.kind:
                case "exchanged":
                    exchanged = msgspec.json.decode(event.body, type=Exchanged)
                    yield from self._exchanged(event, exchanged)
                case "deferred":
                    deferred = msgspec.json.decode(event.body, type=Deferred)
                    yield from self._deferred(event, deferred)
                case _:
                    yield from self._step(event)
        except ValueError as error:
            yield Scene(at=moment(event.at), what=event.kind, text=f"({error})")

    def _exchanged(self, event: StoredEvent, exchanged: Exchanged) -> Iterator[Scene]:
        name = exchanged.inbound_id
        asked = [line.text for line in exchanged.lines if line.role == "user"]
        said = [line for line in exchanged.lines if line.role == "assistant"]
        heard = Scene(
            at=moment(event.at),
            what="heard",
            message=name,
            who=exchanged.sender_name,
            text=asked[-1] if asked else exchanged.asked,
        )
        yield from self._heard(name, heard)
        yield Scene(
            at=moment(event.at),
            what=ENDS.get(exchanged.state, exchanged.state),
            message=name,
            who=said[-1].name if said else "",
            text=said[-1].text if said else exchanged.said,
            reason=exchanged.reason,
            run=exchanged.run,
        )
        yield from self._deliveries(name, event.at)
        self._open.pop(name, None)
        self._tools.clear()

    def _deferred(self, event: StoredEvent, deferred: Deferred) -> Iterator[Scene]:
        yield from self._heard(deferred.inbound_id)
        yield Scene(
            at=moment(event.at),
            what="deferred",
            message=deferred.inbound_id,
            text=deferred.text,
            reason=deferred.reason,
            run=deferred.run,
            due_at=moment(deferred.due_at),
        )
        yield from self._deliveries(deferred.inbound_id, event.at)

    def _step(self, event: StoredEvent) -> Iterator[Scene]:
        name = event.stream.rpartition("/")[2]
        if event.kind == "round":
            round_ = msgspec.json.decode(event.body, type=ModelReplied)
            self._tools |= {call.id: call.name for call in round_.tool_calls}
            yield from self._heard(name)
            yield Scene(
                at=moment(event.at),
                what="round",
                message=name,
                text=round_.text,
                calls=tuple(map(Call.of, round_.tool_calls)),
                usage=round_.usage,
            )
        elif event.kind == "tool":
            tool = msgspec.json.decode(event.body, type=ToolReturned)
            yield Scene(
                at=moment(event.at),
                what="tool",
                message=name,
                who=self._tools.get(tool.call_id, tool.call_id),
                text=tool.text,
                reason="error" if tool.is_error else "",
            )
        else:
            yield Scene(at=moment(event.at), what=event.kind, message=name)

    def _heard(self, name: str, otherwise: Scene | None = None) -> Iterator[Scene]:
        """Tell a message once, from the inbox if it is still there."""
        if name in self._open:
            return
        try:
            row = self._browser.message(name)
        except MisuseError:
            if otherwise is not None:
                yield otherwise
            return
        inbound = self._open[name] = read_inbound(row)
        if inbound is not None:
            yield Scene(
                at=moment(row.at),
                what="heard",
                message=name,
                who=inbound.sender_name,
                text=inbound.text,
            )

    def _deliveries(self, name: str, at: float) -> Iterator[Scene]:
        """Tell what was put into the outbox together with an event."""
        inbound = self._open.get(name)
        correlation_id = name if inbound is None else inbound.correlation_id
        for row in self._browser.deliveries_of(correlation_id):
            if row.at == at and row.id.startswith(f"{name}:"):
                yield delivery_scene(row, name)
