"""The tools of a turn: which are offered, and the calls of one round side by side.

Each call passes the same checks: was it cut off before, is it permitted, is a slot
free. It runs under a time limit. Its result is cut to a bounded size and signed. While
a turn only waits for approvals, it gives its permit to another turn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import cast

import msgspec
import trio

from actors.agents.persona import Persona
from actors.approvals import permissions, receipts as tool_receipt
from actors.commands import registry
from actors.config.collaboration import ToolsThere
from actors.config.limits import PermissionConfig
from actors.delegation import loop_guard
from actors.errors import ToolError
from actors.journal.attachments import names_of
from actors.memory import scopes
from actors.messages.inbound import (
    Image,
    Inbound,
    SentFile,
    ToolCall,
    ToolContext,
    ToolResult,
    ToolSpec,
)
from actors.messages.keys import account_of
from actors.messages.tracing import TracedStep
from actors.ports import Tool
from actors.protocol import (
    ApprovalResult,
    RequestApproval,
    ResumeTurn,
    StartTurn,
    TurnPaused,
)
from actors.rules.markers.actions import Delegation
from actors.rules.markers.descriptions import SPOKEN_TO, Mode
from actors.rules.prompt import tools as prompt_tools
from actors.rules.prompt.tools import DELEGATE
from actors.rules.prompt.transcript import SEND_FILE
from actors.services import Services
from actors.turn import machine as rules
from actors.turn.files import MOST_FILES, TOO_MANY, with_images
from actors.turn.steps import ApprovalRecorded, StepJournal
from actors.turn.stream import AnswerStream
from runtime.actor.ref import UNANSWERED, ActorRef
from runtime.errors import MailboxFullError

LOST = ApprovalResult(
    "unasked", why="it needs somebody's leave, and the question was lost"
)

# Chosen: a session handles a full mailbox of a thousand messages in less.
AGAIN = 1.0
"""Seconds until a session whose mailbox was full is asked again."""


class PermitPauses(msgspec.Struct, eq=False):
    """Pauses the permit of a turn while all of its calls wait for approval.

    Args:
        most: most seconds to wait for the permit again.
    """

    _session: ActorRef
    _turn_id: str
    _most: float
    _working: int = 0
    _waiting: int = 0
    _is_resting: bool = False

    def begin(self, count: int) -> None:
        """Note that this many calls begin, side by side."""
        self._working += count

    def end(self) -> None:
        """Note that one call has ended."""
        self._working -= 1
        self._rest()

    async def ask(self, wanted: RequestApproval, within: float) -> ApprovalResult:
        """Ask people about a call; afterwards the turn holds its permit again.

        Args:
            within: most seconds to wait for the answer.
        """
        reply = self._session.ask(wanted, timeout=within)
        self._working -= 1
        self._waiting += 1
        self._rest()
        try:
            leave = cast("ApprovalResult", await reply)
        except (*UNANSWERED, MailboxFullError):
            leave = LOST
        finally:
            self._waiting -= 1
            self._working += 1
        return leave if await self._go_on() else LOST

    def _rest(self) -> None:
        if self._waiting and not self._working and not self._is_resting:
            self._is_resting = True
            # If this does not arrive, the turn simply keeps its permit.
            self._session.tell(TurnPaused(self._turn_id))

    async def _go_on(self) -> bool:
        """Take the permit again; give whether the session still waits for this turn."""
        while self._is_resting:
            wanted = ResumeTurn(self._turn_id)
            try:
                may = cast("bool", await self._session.ask(wanted, timeout=self._most))
            except MailboxFullError:
                await trio.sleep(AGAIN)
            except UNANSWERED:
                return False
            else:
                self._is_resting = False
                return may
        return True


# Chosen: the session's own timer comes first; this one is for a session that is gone.
GRACE = 10.0
"""Seconds beyond the approval's time limit that a turn waits for its session."""

SUPERSEDED = "another attempt at this took over"


def judge(
    tool: ToolSpec,
    persona: Persona,
    asked: tuple[Inbound, Mode],
    rules: tuple[PermissionConfig, ...],
    there: ToolsThere,
) -> permissions.PermissionDecision:
    """Decide whether a turn may use a tool.

    Args:
        asked: the message, and the mode of its turn.
    """
    inbound, mode = asked
    config = persona.config
    if mode in SPOKEN_TO and not prompt_tools.is_safe(tool, there):
        return permissions.PermissionDecision("deny", prompt_tools.NOT_THERE)
    caller = permissions.Caller(
        agent=persona.name,
        connector=inbound.address.connector,
        chat=inbound.address.chat,
        sender=inbound.sender_id,
        is_delegated=bool(inbound.chain.agents),
    )
    freedom = permissions.Freedom(
        autonomy=config.autonomy,
        tools=config.tool_permissions,
        delegated=config.delegated_tools,
    )
    return permissions.judge(tool, caller, freedom, rules)


class ToolPermissions:
    """Which tools of one turn are allowed, denied, or need an approval."""

    __slots__ = (
        "_persona",
        "_services",
        "_start",
        "_steps",
        "_verdicts",
        "denied",
        "offered",
        "resting",
    )

    def __init__(
        self, start: StartTurn, persona: Persona, services: Services, steps: StepJournal
    ) -> None:
        self._start = start
        self._services = services
        self._steps = steps
        self._verdicts: dict[str, permissions.PermissionDecision] = {}
        self._persona = persona
        self.offered: tuple[ToolSpec, ...] = ()
        """The tools that the model may call."""

        self.resting = PermitPauses(
            start.session, start.turn_id, persona.turn_seconds(services.limits)
        )
        """Is told of every call that begins or ends."""

        self.denied: dict[str, str] = {}
        """The other tools, with the reason."""

    def judge(self, tools: Iterable[ToolSpec]) -> None:
        """Judge each tool by the rules."""
        offered: list[ToolSpec] = []
        for tool in tools:
            verdict = self._judge(tool)
            self._verdicts[tool.name] = verdict
            if verdict.need == "deny":
                self.denied[tool.name] = verdict.why
            else:
                offered.append(tool)
        self.offered = tuple(offered)

    def _judge(self, tool: ToolSpec) -> permissions.PermissionDecision:
        start, services = self._start, self._services
        asked = (start.inbound, start.mode)
        return judge(
            tool,
            self._persona,
            asked,
            services.permissions,
            services.collaboration.tools,
        )

    def is_free(self, tool: str) -> bool:
        """Whether a tool may be used without an approval."""
        verdict = self._verdicts.get(tool)
        return verdict is not None and verdict.need == "allow"

    def needing(self, calls: Iterable[ToolCall]) -> tuple[str, ...]:
        """Give the names of the tools among some calls that need an approval."""
        names = {call.name for call in calls}
        return tuple(
            sorted(
                name
                for name in names.intersection(self._verdicts)
                if self._verdicts[name].need == "ask"
            )
        )

    async def refusal(self, call: ToolCall, tool: ToolSpec, key: str) -> str:
        """Wait until a call is approved, or refused.

        Args:
            tool: its tool, with the worst effect that it may have.
            key: says which call of the message it is.

        Returns:
            Why the call may not run; empty: it may.
        """
        if self._verdicts[tool.name].need == "allow":
            return ""
        known = self._steps.leaves.get(call.id)
        if known is not None and known.outcome in {"denied", "timeout"}:
            return known.why  # decided before the process ended
        if known is None or known.outcome != "approved":
            leave = await self._ask(call, tool, key)
            if self._steps.is_superseded:
                return SUPERSEDED
            if leave.outcome != "approved":
                self._services.metrics.denials.add(1, tool.name, leave.outcome)
                return leave.why
        return ""

    async def _ask(self, call: ToolCall, tool: ToolSpec, key: str) -> ApprovalResult:
        # Recorded first, so that a restart knows that the call has not begun.
        await self._steps.note(ApprovalRecorded(call.id, "asked"))
        if self._steps.is_superseded:
            return LOST
        wanted = RequestApproval(
            turn_id=self._start.turn_id,
            call_id=call.id,
            key=key,
            tool=prompt_tools.name_of(tool.name),
            effect=tool.effect,
            summary=prompt_tools.summary(
                call, self._services.redact, prompt_tools.MOST_ASKED
            ),
        )
        timeout = self._services.approvals.timeout + GRACE
        leave = await self.resting.ask(wanted, timeout)
        noted = ApprovalRecorded(call.id, leave.outcome, leave.by, leave.why)
        await self._steps.note(noted)
        return leave


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
                text = prompt_tools.started(call, self._services.redact)
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
        text = prompt_tools.bound(
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
