"""Runs: what an agent did about one message, and how the API shows that; pure.

A run is one message's row with the steps of its turn and what the ledger has of it. It
says which model and which tools were used, how long it took and what it cost; what
tools were told and gave back is not in it (`callboard replay` tells that).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from actors.messages import Inbound
from actors.records import UsageRecord
from actors.rules.turn import ModelReplied, ToolReturned
from actors.steps import ROUND, TOOL
from connectors.web.eliza.ids import to_uuid
from connectors.web.eliza.perspective import as_uuid, own_id
from runtime.rows import StoredMessage

if TYPE_CHECKING:
    from actors.messages import ToolCall
    from connectors.web.eliza.shapes import Json
    from runtime.rows import StoredEvent

RunStatus = Literal["started", "completed", "timeout", "error"]

STATUSES: tuple[RunStatus, ...] = ("started", "completed", "timeout", "error")

MODEL = "TEXT_LARGE"
"""What official agents call the model that writes their answers."""


class Step(msgspec.Struct, frozen=True):
    """One thing that happened in a run."""

    type: str
    """As the API names it: `MODEL_USED`, …"""

    at: int
    """Milliseconds."""

    data: dict[str, object] = {}


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    agent_id: str
    inbound: Inbound
    row: StoredMessage
    used: UsageRecord | None = None
    """What the ledger has of its last attempt; None: nothing (yet, or any more)."""

    steps: tuple[Step, ...] = ()

    @property
    def id(self) -> str:
        """Its id for clients."""
        return as_uuid(self.inbound.id)

    @property
    def status(self) -> RunStatus:
        """How it is."""
        if self.row.state in {"accepted", "running"}:
            return "started"
        if self.row.state == "replied":
            return "completed"
        return "timeout" if "timeout" in self.row.reason else "error"

    @property
    def started_at(self) -> int:
        """Milliseconds."""
        return int((self.row.started_at or self.row.at) * 1000)

    @property
    def ended_at(self) -> int | None:
        """Milliseconds; None: it has not ended."""
        return int(self.row.settled_at * 1000) if self.row.settled_at else None


def steps_of(events: tuple[StoredEvent, ...]) -> tuple[Step, ...]:
    """Read the steps of a turn; those of another release are left out."""
    found: list[Step] = []
    calls: dict[str, ToolCall] = {}
    for event in events:
        at = int(event.at * 1000)
        try:
            if event.kind == ROUND:
                replied = msgspec.json.decode(event.body, type=ModelReplied)
                calls |= {each.id: each for each in replied.tool_calls}
                found += of_round(replied, at)
            elif event.kind == TOOL:
                ended = msgspec.json.decode(event.body, type=ToolReturned)
                found.append(of_tool(ended, calls.get(ended.call_id), at))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
    return tuple(found)


def of_round(replied: ModelReplied, at: int) -> list[Step]:
    """Tell of one answer of a model that asks for tools."""
    usage = replied.usage
    tokens = usage_shown(usage.input_tokens, usage.output_tokens)
    model: Json = {"modelType": MODEL, "usage": tokens}
    if replied.spent:
        model["provider"] = replied.spent[-1].provider
        model["modelName"] = replied.spent[-1].model
    begun: list[Step] = [
        Step("ACTION_STARTED", at, {"actionName": each.name, "actionId": each.id})
        for each in replied.tool_calls
    ]
    return [Step("MODEL_USED", at, model), *begun]


def of_tool(ended: ToolReturned, call: ToolCall | None, at: int) -> Step:
    """Tell of one tool that ended."""
    name = call.name if call is not None else ended.call_id
    data: Json = {"actionName": name, "actionId": ended.call_id}
    return Step("ACTION_COMPLETED", at, data | {"success": not ended.is_error})


def events_of(run: Run) -> list[Step]:
    """Tell a run from its beginning to its end, as far as that has come."""
    began: Json = {"runId": run.id, "source": run.inbound.platform_fields.get("source")}
    told = [Step("RUN_STARTED", run.started_at, began), *run.steps]
    if run.ended_at is None:
        return told
    if run.used is not None and run.used.rounds > models_in(run):
        told.append(Step("MODEL_USED", run.ended_at, model_shown(run.used)))
    ended: Json = {"runId": run.id, "status": run.status, "reason": run.row.reason}
    took: Json = {"duration": run.ended_at - run.started_at}
    return [*told, Step("RUN_ENDED", run.ended_at, ended | took)]


def run_shown(run: Run) -> Json:
    """Show how a run went, all in all."""
    failed = [each for each in run.steps if each.data.get("success") is False]
    actions = [each for each in run.steps if each.type == "ACTION_STARTED"]
    ended, agent_id = run.ended_at, run.agent_id
    used = run.used
    rounds = used.rounds if used is not None else 0
    metadata: Json = {
        "sourceId": message_of(run.inbound),
        "channelId": run.inbound.address.chat,
        "attempts": run.row.attempts,
        "reason": run.row.reason,
    }
    if used is not None:
        metadata |= model_shown(used) | {"costUsd": used.cost}
    return {
        "runId": run.id,
        "status": run.status,
        "startedAt": run.started_at,
        "endedAt": ended,
        "durationMs": None if ended is None else max(0, ended - run.started_at),
        "messageId": own_id(agent_id, message_of(run.inbound)),
        "roomId": own_id(agent_id, run.inbound.address.chat),
        "entityId": own_id(agent_id, to_uuid(run.inbound.sender_id)),
        "counts": {
            "actions": len(actions),
            "modelCalls": max(rounds, models_in(run)),
            "errors": len(failed) + (run.status in {"error", "timeout"}),
            "evaluators": 0,
        },
        "metadata": metadata,
    }


def logs_of(run: Run) -> list[Json]:
    """Tell a run as the entries of an agent's log, the newest first."""
    shown = run_shown(run)
    about: Json = {
        "agentId": run.agent_id,
        "entityId": shown["entityId"],
        "roomId": shown["roomId"],
    }
    found: list[Json] = []
    for number, step in enumerate(events_of(run)):
        kind, text = kind_of(step)
        body: Json = step.data | {"runId": run.id, "event": step.type}
        if step.type == "MODEL_USED":
            body["modelKey"] = step.data.get("modelName")
        entry: Json = {
            "id": to_uuid(f"log/{run.id}/{number}"),
            "type": kind,
            "message": text,
            "body": body,
            "timestamp": step.at,
            "createdAt": step.at,
        }
        found.append(about | entry)
    return found[::-1]


def kind_of(step: Step) -> tuple[str, str]:
    """Say under which type a step stands in a log, and in which words."""
    match step.type:
        case "MODEL_USED":
            model = step.data.get("modelName") or "a model"
            return f"useModel:{MODEL}", f"asked {model}"
        case "ACTION_STARTED":
            return "action", f"began {step.data['actionName']}"
        case "ACTION_COMPLETED":
            end = "ended" if step.data["success"] else "failed"
            return "action", f"{step.data['actionName']} {end}"
        case "RUN_ENDED":
            return "run_event", f"run ended: {step.data['status']}"
        case _:
            return "run_event", "run began"


def models_in(run: Run) -> int:
    """Count the answers of models among a run's steps."""
    return sum(each.type == "MODEL_USED" for each in run.steps)


def model_shown(used: UsageRecord) -> Json:
    """Show which model was asked, and how much it read and wrote."""
    return {
        "modelType": MODEL,
        "provider": used.provider,
        "modelName": used.model,
        "usage": usage_shown(used.input_tokens, used.output_tokens),
    }


def usage_shown(read: int, wrote: int) -> Json:
    """Show how many tokens were read and written."""
    return {
        "prompt_tokens": read,
        "completion_tokens": wrote,
        "total_tokens": read + wrote,
    }


def message_of(inbound: Inbound) -> str:
    """Give the id of the message that a run is about; of a copy its original's."""
    end = f"+{inbound.agent}" if inbound.copy_of else ""
    return inbound.platform_id.removesuffix(end)
