"""The tools of a turn: which are offered, and the calls of one round side by side.

Each call passes the same checks: was it cut off before, is it permitted, is a slot
free. It runs under a time limit. Its result is cut to a bounded size and signed.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec
import trio

from actors.approvals import receipts as tool_receipt
from actors.commands import registry
from actors.delegation import loop_guard
from actors.errors import ToolError
from actors.journal.attachments import names_of
from actors.memory import scopes
from actors.messages.inbound import (
    Image,
    SentFile,
    ToolCall,
    ToolContext,
    ToolResult,
    ToolSpec,
)
from actors.messages.keys import account_of
from actors.messages.tracing import TracedStep
from actors.rules.markers.actions import Delegation
from actors.rules.prompt import tools as tool_notice
from actors.rules.prompt.tools import DELEGATE
from actors.rules.prompt.transcript import SEND_FILE
from actors.turn import machine as rules
from actors.turn.files import MOST_FILES, TOO_MANY, with_images
from actors.turn.permissions import ToolPermissions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from actors.agents.persona import Persona
    from actors.ports import Tool
    from actors.protocol import StartTurn
    from actors.services import Services
    from actors.turn.steps import StepJournal
    from actors.turn.stream import AnswerStream

IN_DOUBT = (
    "nobody knows whether this was done: the program ended while it ran. Find out"
    " before you do it again, or say so."
)
"""The result of a call that was cut off and must not simply be repeated."""

TOO_SLOW = (
    "it took longer than {seconds:g} seconds and was cut off; what it had done until"
    " then is done"
)

# Chosen: the vendors take 5 to 20 MB with one message, and the journal keeps all of it.
MOST_IMAGES = 4
MOST_IMAGE_BYTES = 8 * 1024 * 1024
"""Most pictures of one result, and most bytes of all of them."""

LEFT_OUT = "(Pictures left out: at most {count}, of {size} MiB in all.)"


class DelegateArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of the `delegate` tool."""

    agent: str
    task: str


GONE = "this tool is not there any more; nobody knows whether the call was carried out"
"""The result of a call whose tool is gone."""

DELEGATE_SPEC = ToolSpec(
    name=DELEGATE,
    description="Hand a task to a colleague, who answers in this chat.",
    parameters=msgspec.json.encode(
        {
            "type": "object",
            "properties": {
                "agent": {"type": "string", "description": "the colleague's name"},
                "task": {"type": "string", "description": "what is to be done"},
            },
            "required": ["agent", "task"],
            "additionalProperties": False,
        }
    ),
    effect="read",
    is_own_words=True,
)


NO_TOOLS: Mapping[str, Tool] = {}


class ToolCalls:
    """Runs the tool calls of one turn.

    Args:
        persona: has the tools, and the agents that it may delegate to.
        colleagues: the tools that ask other agents.
    """

    __slots__ = (
        "_files",
        "_in_doubt",
        "_own",
        "_persona",
        "_services",
        "_slots",
        "_start",
        "_steps",
        "_tools",
        "_words",
        "delegations",
        "notes",
        "permits",
        "standing",
    )

    def __init__(
        self,
        start: StartTurn,
        persona: Persona,
        services: Services,
        steps: StepJournal,
        words: AnswerStream,
        colleagues: Mapping[str, Tool] = NO_TOOLS,
    ) -> None:
        self._start = start
        self._persona = persona
        self._services = services
        self._steps = steps
        self._words = words
        self._in_doubt: frozenset[str] = frozenset()
        self._slots = trio.CapacityLimiter(services.tool_calls.max_parallel_tools)
        self.permits = ToolPermissions(start, persona, services, steps)
        # The agent's own tools come last, so that no server can replace one.
        self._own = {**persona.tools, **colleagues}
        self._tools: dict[str, Tool] = dict(self._own)
        self.notes: tuple[str, ...] = ()
        """Texts of tool sources for this message."""

        self.standing: tuple[str, ...] = ()
        """Texts of tool sources that are the same for every message."""

        self._judge()
        self.delegations: list[Delegation] = []
        """The tasks that were delegated so far."""

        self._files: dict[str, tuple[SentFile, ...]] = {}

    @property
    def files(self) -> tuple[SentFile, ...]:
        """The files that go out with the answer so far."""
        return tuple([file for files in self._files.values() for file in files])

    def enclose(self, returned: rules.ToolReturned) -> None:
        """Add the files of a call, of this attempt or an earlier one."""
        self._files[returned.call_id] = returned.files

    def _judge(self) -> None:
        specs = tuple([tool.spec for tool in self._tools.values()])
        has_colleagues = bool(self._persona.colleagues)
        self.permits.judge((*specs, DELEGATE_SPEC) if has_colleagues else specs)

    async def look_around(self) -> tuple[str, ...]:
        """Ask the sources which tools they have now, beside the agent's own.

        Returns:
            The names of all tools that may be called.
        """
        context, words = self._context(), self._start.inbound.text
        sources = self._persona.sources
        offers = [await source.offer(context, words) for source in sources]
        found = {tool.spec.name: tool for offer in offers for tool in offer.tools}
        self._tools = found | self._own
        self.notes = tuple([note for offer in offers for note in offer.notes])
        self.standing = tuple([note for x in offers for note in x.standing])
        self._judge()
        return tuple([spec.name for spec in self.permits.offered])

    def _context(self) -> ToolContext:
        inbound = self._start.inbound
        # The turn has looked the person up, so linked accounts are known by now.
        known = self._services.acquaintances.find(account_of(inbound))
        return ToolContext(
            agent=self._persona.name,
            correlation_id=inbound.correlation_id,
            address=inbound.address,
            sender_id=inbound.sender_id,
            caller=inbound.caller,
            skill=""
            if inbound.chain.agents
            else registry.skill_named(inbound.text, self._persona.skills),
            is_direct=inbound.is_direct,
            accounts=() if known is None else known.accounts,
            member=scopes.member_of(inbound, self._services.sessions.session_scope),
        )

    def doubt(
        self, open_effects: list[rules.Effect], needed_leave: tuple[str, ...]
    ) -> None:
        """Note which calls an attempt that was cut off may have begun.

        Args:
            open_effects: the effects without a recorded step.
            needed_leave: tools that needed an approval.
        """
        leaves = self._steps.leaves
        open_calls = [e.call for e in open_effects if isinstance(e, rules.CallTool)]
        self._in_doubt = frozenset(
            call.id
            for call in open_calls
            if (call.name not in needed_leave and call.id not in leaves)
            or (call.id in leaves and leaves[call.id].outcome == "approved")
        )

    async def run(
        self,
        calls: list[ToolCall],
        returned: Callable[[rules.ToolReturned], Awaitable[None]],
    ) -> None:
        """Run the calls of one round side by side."""
        resting = self.permits.resting

        async def run(call: ToolCall) -> None:
            try:
                await returned(await self._run_one(call))
            finally:
                resting.end()

        for call in calls:
            self._files.setdefault(call.id, ())  # keeps the order of the calls
        resting.begin(len(calls))  # before the first of them asks people
        async with trio.open_nursery() as nursery:
            for call in calls:
                nursery.start_soon(run, call)

    async def _run_one(self, call: ToolCall) -> rules.ToolReturned:
        if call.name == DELEGATE:
            began = self._services.clock.monotonic()
            returned = self.delegate(call)
            outcome = "error" if returned.is_error else "ok"
            seconds = self._services.clock.monotonic() - began
            self._services.metrics.tool_calls.observe(seconds, call.name, outcome)
            if (trace := self._services.trace) is not None:
                trace(self._step(call, seconds, outcome))
            return returned
        tool = self._tools.get(call.name)
        if tool is None:
            self._services.metrics.tool_calls.observe(0.0, call.name, "gone")
            return rules.ToolReturned(call.id, GONE, is_error=True)
        if call.id in self._in_doubt and not tool.spec.is_repeatable:
            self._services.metrics.tool_calls.observe(0.0, call.name, "unknown")
            return rules.ToolReturned(call.id, IN_DOUBT, is_error=True)
        key = key_of(call)
        why = await self.permits.refusal(call, tool.spec, key)
        if why:
            text = f"{call.name} was not run: {why}"
            return rules.ToolReturned(call.id, text, is_error=True)
        async with self._slots:
            if self._persona.config.show_tool_calls:
                text = tool_notice.started(call, self._services.redact)
                self._words.note(key, text, "tool")
            result = await self._execute(tool, call)
            result = await with_images(result, call.name, self._persona, self._services)
            return self._kept(call, tool.spec, result)

    async def _execute(self, tool: Tool, call: ToolCall) -> ToolResult:
        """Run a call under the time limit."""
        context = self._context()
        seconds = self._services.tool_calls.tool_timeout
        began = self._services.clock.monotonic()
        outcome = "cancelled"
        result = ToolResult(TOO_SLOW.format(seconds=seconds), is_error=True)
        try:
            with trio.move_on_after(seconds) as scope:
                result = await tool.run(call, context)
                outcome = "error" if result.is_error else "ok"
            if scope.cancelled_caught:
                outcome = "timeout"
        except ToolError as error:
            outcome = "failed"
            result = ToolResult(str(error), is_error=True)
        finally:
            took = self._services.clock.monotonic() - began
            self._services.metrics.tool_calls.observe(took, call.name, outcome)
            if (trace := self._services.trace) is not None:
                trace(self._step(call, took, outcome))
        return result

    def _step(self, call: ToolCall, seconds: float, outcome: str) -> TracedStep:
        return TracedStep(
            stage="tool",
            correlation_id=self._start.inbound.correlation_id,
            seconds=seconds,
            name=call.name,
            agent=self._persona.name,
            turn=self._start.turn_id,
            outcome=outcome,
        )

    def _kept(
        self, call: ToolCall, spec: ToolSpec, result: ToolResult
    ) -> rules.ToolReturned:
        """Cut a result to its bounds, and sign it."""
        room = max(0, MOST_FILES - len(self.files))
        if len(result.files) > room:
            text = f"{TOO_MANY}; left out: {names_of(result.files[room:])}"
            if call.name != SEND_FILE:  # its text is a result of its own
                text = f"{result.text}\n({text})"
            result = msgspec.structs.replace(
                result,
                text=text,
                is_error=result.is_error or call.name == SEND_FILE,
                files=result.files[:room],
            )
        text = tool_notice.bound(
            result.text, self._services.tool_calls.max_result_chars
        )
        images = fitting(result.images)
        if len(images) < len(result.images):
            size = MOST_IMAGE_BYTES // (1024 * 1024)
            text = f"{text}\n{LEFT_OUT.format(count=MOST_IMAGES, size=size)}"
        returned = rules.ToolReturned(
            call.id,
            text,
            result.is_error,
            images=images,
            is_foreign=not spec.is_own_words,
            files=result.files,
        )
        self.enclose(returned)
        return msgspec.structs.replace(returned, proof=self._proof(call, returned))

    def _proof(
        self, call: ToolCall, returned: rules.ToolReturned
    ) -> tool_receipt.ToolReceipt | None:
        key, stream = self._services.receipt_key, self._start.steps
        if not (key and stream):
            return None
        conversation, _, message = stream.rpartition("/")
        claim = tool_receipt.ReceiptClaim(
            conversation=conversation,
            message=message,
            call_id=call.id,
            name=call.name,
            arguments=tool_receipt.digest_of_arguments(call.arguments),
            result=tool_receipt.digest_of_result(
                returned.text, returned.images, is_error=returned.is_error
            ),
            at=self._services.clock.wall(),
        )
        receipt = tool_receipt.sign(key, claim)
        return tool_receipt.ToolReceipt(claim.name, claim.arguments, claim.at, receipt)

    def delegate(self, call: ToolCall) -> rules.ToolReturned:
        """Note a task that is delegated, if it may be."""
        try:
            wanted = msgspec.json.decode(call.arguments, type=DelegateArguments)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return rules.ToolReturned(call.id, f"bad arguments: {error}", is_error=True)
        verdict = loop_guard.may_delegate(
            self._start.inbound.chain,
            self._persona.name,
            wanted.agent,
            self._persona.delegation_limits(self._services.limits.max_hops),
            self._services.clock.monotonic(),
        )
        if isinstance(verdict, loop_guard.DelegationRefused):
            return rules.ToolReturned(call.id, verdict.text, is_error=True)
        if not wanted.task.strip():
            return rules.ToolReturned(call.id, "say what is to be done", is_error=True)
        self.delegations.append(Delegation(verdict.target, wanted.task.strip()))
        text = f"Handed to {verdict.target}, who will answer in this chat."
        return rules.ToolReturned(call.id, text)


def key_of(call: ToolCall) -> str:
    """Give a key that is the same when the turn is begun again."""
    parts = (call.id, call.name, call.arguments)
    return hashlib.sha256(msgspec.msgpack.encode(parts)).hexdigest()[:16]


def fitting(images: tuple[Image, ...]) -> tuple[Image, ...]:
    """Give the first pictures, as many as fit."""
    room, taken = MOST_IMAGE_BYTES, 0
    for image in images[:MOST_IMAGES]:
        room -= len(image.content)
        if room < 0:
            break
        taken += 1
    return images[:taken]
