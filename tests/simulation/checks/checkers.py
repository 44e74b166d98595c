"""What must hold in every run, whatever goes wrong in it.

I1   each message that was acknowledged reaches exactly one terminal state
I2   nobody sees a reply twice, but where a crash fell between sending and receipt
I3   per conversation and person, answers come in the order in which messages were
     accepted;
     what one agent says in it is shown in the order in which it was stored
I4   a word that belongs to one conversation appears in no other
I5   no queue is longer than its bound, and every refusal is said
I6   at rest nothing is kept: no session, no courier, no entry of a map, no timer
I7   a poisonous message is given up, and its neighbours go on
I8   is about models that hang: `hangs.py`
R1 to R3 are about rooms: `room_checkers.py`
R4, R5 are about who waits for whom: `passing.py`
I10  is about appointments: `appointments.py`
I11  what the operator dropped is not said, but for what was on its way already
I12  received = replied + dropped + cancelled + dead, by rows and by metrics

Those that can be judged at once are here; `verdicts.py` has those at the end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager

import msgspec
import trio

from actors.messages.deliveries import Delivery, Draft
from actors.messages.inbound import Inbound, ModelRequest, ToolContext
from actors.outbound.retry import WAITED_AFTER
from actors.rules.groups.routes import Routed, RoutingTable, route
from actors.schedule.occasions import LANES
from runtime.actor.kernel import Kernel
from runtime.store.rows import Commit
from tests.simulation.appointments import Appointments
from tests.simulation.checks.ledger import Ledger, Message
from tests.simulation.checks.room_checkers import ASIDE, RoomCheckers
from tests.simulation.limit import Limit
from tests.simulation.trace import Trace
from tests.simulation.workload import CANARY, Plan, canary

# Chosen: longer than an actor that died is away: it hands on then what was stored, and
# dropped meanwhile.
BACK_AFTER = 120.0

# Who is told to stop by an agent that is being restarted hears it when that is back.
AWAY = 1.0

LANE_FIELD = 5
"""Where the lane stands in the key of a conversation."""


class Showing(msgspec.Struct):
    """One time that people saw a delivery."""

    at: float
    cuts: int
    """How many processes and connections had been cut by then."""

    is_lost: bool = False
    """Whether the platform's answer did not arrive."""


class Checkers:
    """The judges of one run.

    Args:
        plan: says which conversations there are.
        table: says who hears what.
        trace: where violations go.
    """

    def __init__(self, plan: Plan, table: RoutingTable, trace: Trace) -> None:
        self.ledger = Ledger()
        self.acked: set[tuple[str, str]] = set()
        self.showings: defaultdict[str, list[Showing]] = defaultdict(list)
        self.cuts = 0
        """Crashes so far, of a process or of what delivers."""

        self.cut_at = -2.0
        """When a process died last."""

        self.appointments: Appointments | None = None
        """Those of the run, if it has any; the world sets it."""

        self.rooms = RoomCheckers(plan, self.ledger, trace)
        self._tried: dict[str, int] = {}
        self.died_at = -1.0
        """When an actor died last, other than with its process."""

        self._plan = plan
        self._table = table
        self._trace = trace
        self._owners: dict[str, str] = {}
        self._chats: dict[str, tuple[str, str]] = {}
        self._last_settled: dict[tuple[str, ...], tuple[int, str]] = {}
        self._last_shown: dict[tuple[str, str], tuple[int, str]] = {}
        self._excused: set[tuple[str, str, int]] = set()
        self._by_model: defaultdict[str, Limit] = defaultdict(
            lambda: Limit(plan.limits.max_in_flight)
        )
        self._by_session: defaultdict[tuple[str, str], Limit] = defaultdict(
            lambda: Limit(1)
        )

    # --- in -----------------------------------------------------------------------

    def handed_in(self, inbound: Inbound) -> None:
        """Remember whose words these are."""
        address = inbound.address
        self._chats[inbound.id] = (address.connector, address.chat)
        self._owners[inbound.id] = self.owner_of(inbound)

    def owner_of(self, inbound: Inbound) -> str:
        """Give the word that only the conversation of a message may know."""
        return canary(
            inbound.address.connector,
            inbound.address.chat,
            inbound.sender_id,
            is_direct=inbound.is_direct,
            scope=self._plan.sessions.session_scope,
        )

    def owner(self, correlation_id: str) -> str:
        """Give the same of what a platform handed in."""
        return self._owners[correlation_id]

    def acknowledged(self, connector: str, platform_id: str) -> None:
        """Note that a platform will not hand this in again."""
        self.acked.add((connector, platform_id))

    # --- the disk -----------------------------------------------------------------

    def committed(self, commit: Commit) -> None:
        """Judge a commit that became durable."""
        self.ledger.write(commit, trio.current_time())
        if self.appointments is not None:
            self._take_up(commit, self.appointments)
        for row in commit.accepts:
            platform_id = self.ledger.messages[row.id].inbound.platform_id
            same = self.ledger.by_platform_id[row.connector, platform_id]
            if len(same) > 1:
                text = f"{platform_id} was accepted {len(same)} times"
                self._trace.violate("I2", text, *same)
        self.rooms.committed(commit)
        for settle in commit.settles:
            message = self.ledger.messages[settle.inbox_id]
            if len(message.ends) > 1:
                text = f"{settle.inbox_id} was settled as {message.ends}"
                self._trace.violate("I1", text, settle.inbox_id)
            if message.ends and message.ends[-1][0] == "replied":
                self._check_order(settle.inbox_id)

    def _take_up(self, commit: Commit, appointments: Appointments) -> None:
        """Remember whose appointments these are, and judge I10."""
        for row in commit.accepts:
            inbound = self.ledger.messages[row.id].inbound
            if appointments.is_slot(inbound):
                self.handed_in(inbound)
                appointments.accepted(inbound)
        for said in commit.deliveries:
            it = appointments.told_of(said.delivery_id)
            if it is not None:
                address, scope = it.address, self._plan.sessions.session_scope
                place = (address.connector, address.chat)
                self._chats[said.correlation_id] = place
                self._owners[said.correlation_id] = canary(
                    *place, it.sender_id, is_direct=True, scope=scope
                )

    def _check_order(self, inbox_id: str) -> None:
        """Compare with the message answered last in the same conversation."""
        message = self.ledger.messages[inbox_id]
        inbound = message.inbound
        if inbound.text.startswith("/") and not inbound.chain.agents:
            return  # a command is answered at once
        if inbound.occasion in {"said", "told"}:
            return  # so is what only has to be said, or written down
        if inbound.correlation_id in self.ledger.by_hand:
            return
        session: tuple[str, ...] | None = self._session(inbound)
        if session is None:
            return
        # A copy for a further agent was accepted when its original was.
        is_copy = not inbound.chain.agents and inbox_id != inbound.correlation_id
        first = self.ledger.messages[inbound.correlation_id] if is_copy else message
        # Who waits for another attempt, or for people, lets other people pass.
        session = (*session, inbound.sender_id)
        before, later = self._last_settled.get(session, (0, ""))
        if first.number < before and self._were_written_together(first, later):
            return
        if first.number < before:
            text = f"{inbox_id} was answered after {later} by {session}"
            # After a restart a copy is taken up in the place of its own row, which
            # stands behind what was accepted while the copies were being stored.
            was_cut = is_copy and self.cut_at >= first.at
            since = -1.0 if was_cut else first.at
            self._judge("I3", text, since, inbox_id, later)
        else:
            self._last_settled[session] = (first.number, inbox_id)

    def _were_written_together(self, message: Message, later: str) -> bool:
        """Whether a person and an agent wrote in the same moment.

        Two writers of one group commit have no order between them.
        """
        other = self.ledger.messages[later]
        is_by_agent = bool(message.inbound.chain.agents)
        return message.at == other.at and (
            is_by_agent != bool(other.inbound.chain.agents)
        )

    def _session(self, inbound: Inbound) -> tuple[str, str] | None:
        """Name the agent that answers a message, and the conversation; None: nobody."""
        owner = f"{self._owners[inbound.correlation_id]}{inbound.lane}"
        if not (inbound.is_direct or inbound.agent or inbound.chain.agents):
            first = self.rooms.first_of(inbound)
            return (first, owner) if first else None
        routed = route(inbound, self._table)
        return (routed.agents[0], owner) if isinstance(routed, Routed) else None

    def _asker(self, correlation_id: str) -> str:
        """Name whose words a request answers: what waits lets only others pass."""
        message = self.ledger.messages.get(correlation_id)
        return "" if message is None else message.inbound.sender_id

    # --- the model ----------------------------------------------------------------

    @contextmanager
    def asking(self, request: ModelRequest) -> Generator[None]:
        """Judge a prompt, and how many are answered at once."""
        owner = self._owners[request.correlation_id]
        config = self._plan.agents[request.agent].groups
        # What is said in a room, all in it read.
        room = owner.rpartition(".")[0] if config.pending_messages else ""
        for line in request.lines:
            words = CANARY.findall(line.text)
            foreign = [w for w in words if not room or w.rpartition(".")[0] != room]
            where = f"a prompt of {request.agent}"
            self._check_words(" ".join(foreign), owner, where, request.correlation_id)
        # What is summed up is so beside the turn, and one at a time like it.
        beside = request.conversation.endswith("/condense")
        if (
            ASIDE in request.conversation
        ):  # nor does who is asked behind the scenes wait
            owner = request.conversation
        fields = request.conversation.split("/")[LANE_FIELD:]
        lane = next((each for each in fields if each in LANES), "")
        asker = "" if beside else self._asker(request.correlation_id)
        session = self._by_session[f"{request.agent} {lane} {beside} {asker}", owner]
        limits = (self._by_model[request.model], session)
        for limit in limits:
            limit.begin(trio.current_time())
        try:
            yield
        finally:
            for limit in limits:
                since = limit.since or 0.0
                if limit.end(trio.current_time()):
                    text = f"{request.agent} answered {owner} beside too many others"
                    died = since - AWAY
                    self._judge("I5", text, died, request.correlation_id)

    def tool_called(self, context: ToolContext) -> None:
        """Judge on whose behalf a tool runs."""
        chat = (context.address.connector, context.address.chat)
        if self._chats[context.correlation_id] != chat:
            text = f"a tool ran for {chat}"
            self._trace.violate("I4", text, context.correlation_id)

    def _check_words(self, text: str, owner: str, where: str, subject: str) -> None:
        foreign = {word for word in CANARY.findall(text) if word != owner}
        if foreign:
            words = ", ".join(sorted(foreign))
            self._trace.violate("I4", f"{words} in {where} of {owner}", subject)

    # --- out ----------------------------------------------------------------------

    def draft_shown(self, draft: Draft) -> None:
        """Judge what is shown while it is written."""
        owner = self._owners[draft.correlation_id]
        self._check_words(draft.text, owner, "a draft", draft.correlation_id)

    def tried(self, delivery_id: str) -> None:
        """Note that a platform is asked to show this."""
        self._tried.setdefault(delivery_id, self.cuts)
        now = trio.current_time()
        if now - self.ledger.left_unsaid.get(delivery_id, now) > WAITED_AFTER:
            text = f"{delivery_id} was to be said after it was dropped"
            self._judge("I11", text, max(0.0, now - BACK_AFTER), delivery_id)

    def answer_lost(self, delivery_id: str) -> None:
        """Note that the platform's answer to the last showing did not arrive."""
        for showing in self.showings[delivery_id][-1:]:
            showing.is_lost = True

    def shown(self, connector: str, delivery: Delivery) -> None:
        """Judge what people see."""
        chat = (connector, delivery.address.chat)
        owner = self._owners[delivery.correlation_id]
        if self._chats[delivery.correlation_id] != chat:
            text = f"{delivery.id} was shown in {chat}"
            self._trace.violate("I4", text, delivery.id, delivery.correlation_id)
        self._check_words(delivery.text, owner, "a reply", delivery.id)
        before = self.showings[delivery.id]
        if before:
            why_not = self._excuse(chat, before[-1])
            if delivery.id not in self.ledger.by_hand:
                self._check_repeat(delivery.id, before[-1].at, why_not)
        else:
            self._check_shown_order(delivery.id)
        before.append(Showing(trio.current_time(), self.cuts))

    def _excuse(self, chat: tuple[str, str], last: Showing) -> str:
        """Say why a delivery must not be shown again; empty if it may."""
        abilities = self._plan.abilities[chat[0]]
        if abilities.is_idempotent or abilities.can_look_up:
            return "its platform knows what was said"
        if self._plan.on_unknown == "hold":
            return "it was to be held"
        if last.is_lost:
            return ""
        if self.cuts == last.cuts:
            return "nothing was cut in between"
        cut = (*chat, last.cuts)
        if cut in self._excused:
            return "one cut excuses one repeat in a chat"
        self._excused.add(cut)
        return ""

    def _check_repeat(self, delivery_id: str, since: float, why_not: str) -> None:
        self._trace.note("repeat", delivery_id, why_not)
        if self.ledger.said[delivery_id].receipts:
            why_not = "its receipt was stored before"
        if why_not:
            text = f"{delivery_id} was shown again: {why_not}"
            self._judge("I2", text, since, delivery_id)

    def _judge(self, invariant: str, text: str, since: float, *subjects: str) -> None:
        """Violate, or tolerate if an actor has died half way since then."""
        if self.died_at >= since:
            self._trace.tolerate(invariant, text, *subjects)
        else:
            self._trace.violate(invariant, text, *subjects)

    def _check_shown_order(self, delivery_id: str) -> None:
        """Compare with what was shown last of the same session."""
        said = self.ledger.said.get(delivery_id)
        if said is None:
            self._trace.violate("I1", f"{delivery_id} was never stored", delivery_id)
            return
        if self.appointments and self.appointments.told_of(delivery_id):
            return
        inbound = self.ledger.messages[delivery_id.partition(":")[0]].inbound
        session = self._session(inbound)
        if session is None or self.ledger.by_hand & {
            delivery_id,
            said.delivery.correlation_id,
        }:
            return
        before, earlier = self._last_shown.get(session, (0, ""))
        if said.number < before:
            text = f"{delivery_id} was shown after {earlier} by {session}"
            # What a platform refused is tried again if the receipt was lost.
            was_cut = self._tried[delivery_id] < self.cuts
            since = -1.0 if was_cut else said.at
            self._judge("I3", text, since, delivery_id, earlier)
        else:
            self._last_shown[session] = (said.number, delivery_id)

    # --- bounds -------------------------------------------------------------------

    def sample(self, kernel: Kernel) -> None:
        """Judge how much waits anywhere, now."""
        messages = self.ledger.messages
        for name, cell in kernel.names.items():
            mailbox = cell.mailbox
            if mailbox.depth > mailbox.config.capacity:
                self._trace.violate("I5", f"{mailbox.depth} messages wait for {name}")
            queue = getattr(cell.actor, "_queue", None)
            line = [each for each in getattr(queue, "waiting", ()) if each in messages]
            # A command that ends the conversation finds a place in a full line.
            ends = any(messages[each].inbound.text.startswith("/") for each in line)
            waiting = len(line) - ends
            most = getattr(queue, "most_waiting", waiting)
            if waiting > most:
                # What was taken in before a crash is owed its turn, whatever waits.
                is_owed = self.cuts or self.died_at >= 0 or self.ledger.by_hand
                blame = self._trace.tolerate if is_owed else self._trace.violate
                blame("I5", f"{waiting} wait in {name}, not {most}")
