"""What the domain counts on a message's way; all labels are bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actors.messages import Usage
    from runtime.metrics import Metrics

SECONDS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1,
    2.5,
    5,
    10,
    30,
    60,
    300,
)
"""Upper bounds of the histograms' buckets, in seconds."""


class LineMetrics:
    """The counters of the line.

    Args:
        metrics: where they are registered.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._messages = metrics.counter(
            "callboard_messages",
            "Messages by connector and what became of them.",
            ("connector", "outcome"),
        )
        self._refusals = metrics.counter(
            "callboard_refusals",
            "Messages and requests that were not let in, by connector and reason.",
            ("connector", "reason"),
        )
        self._pairings = metrics.counter(
            "callboard_pairings",
            "Requests to be let in, by what became of them.",
            ("outcome",),
        )
        self._turns = metrics.counter(
            "callboard_turns", "Turns by agent and outcome.", ("agent", "outcome")
        )
        self._paces = metrics.counter(
            "callboard_turn_paces",
            "Turns that became long-running, stalled or stuck, went on, or were gone.",
            ("agent", "pace"),
        )
        self._buffered = metrics.counter(
            "callboard_buffered",
            "What a busy conversation did with messages, by agent and outcome.",
            ("agent", "outcome"),
        )
        self._killed = metrics.counter(
            "callboard_actors_killed", "Actors that were killed by hand.", ("kind",)
        )
        self._left_out = metrics.counter(
            "callboard_notices_left_out",
            "Notices that people were not told: refusals told lately, floods of them.",
            ("reason",),
        )
        self._stages = metrics.histogram(
            "callboard_stage_seconds",
            "Seconds a message spent in one stage of its way.",
            ("stage",),
            SECONDS,
        )
        self._model_calls = metrics.histogram(
            "callboard_model_call_seconds",
            "Seconds of one model call, by model and outcome.",
            ("model", "outcome"),
            SECONDS,
        )
        self._tokens = metrics.counter(
            "callboard_model_tokens",
            "Tokens by model and direction.",
            ("model", "direction"),
        )
        self._account_calls = metrics.counter(
            "callboard_account_calls",
            "Calls by account, model and how they ended.",
            ("account", "model", "outcome"),
        )
        self._cool_downs = metrics.gauge(
            "callboard_cool_downs", "Models on an account that are left alone now."
        )
        self._accounts_out = metrics.gauge(
            "callboard_accounts_out",
            "Accounts that were not let in, and wait for other settings.",
        )
        self._fallbacks = metrics.counter(
            "callboard_fallbacks",
            "Calls that went to another model than the wanted one; none: to no one.",
            ("model", "instead"),
        )
        self._budgets = metrics.counter(
            "callboard_budget",
            "What budgets did: soft, downgrade, held, stop.",
            ("action",),
        )
        self._cost = metrics.counter(
            "callboard_cost_dollars", "US dollars spent, by model.", ("model",)
        )
        self._tool_calls = metrics.histogram(
            "callboard_tool_call_seconds",
            "Seconds of one tool call, by tool and outcome.",
            ("tool", "outcome"),
            SECONDS,
        )
        self._denials = metrics.counter(
            "callboard_tool_denials",
            "Tool calls that were not allowed, by tool and reason.",
            ("tool", "reason"),
        )
        self._commands = metrics.counter(
            "callboard_commands",
            "Commands of people, by their word and what came of them.",
            ("command", "outcome"),
        )
        self._approvals = metrics.counter(
            "callboard_approvals",
            "Questions whether a tool may run, by what became of them.",
            ("outcome",),
        )
        self._loops = metrics.counter(
            "callboard_tool_loops",
            "Tool calls that repeated themselves, by agent and what was done.",
            ("agent", "outcome"),
        )
        self._rewritings = metrics.histogram(
            "callboard_rewriting_seconds",
            "Seconds until a conversation was summed up, gone through, or ended.",
            ("what", "cause", "outcome"),
            SECONDS,
        )
        self._deliveries = metrics.counter(
            "callboard_deliveries",
            "Deliveries by connector and how they ended.",
            ("connector", "state"),
        )
        self._presence = metrics.counter(
            "callboard_presence",
            "Drafts and reactions by connector, and what became of each call.",
            ("connector", "what", "outcome"),
        )
        self._delegations = metrics.counter(
            "callboard_delegations",
            "Tasks handed on by an agent, and refusals by reason.",
            ("agent", "outcome"),
        )
        self._collaborations = metrics.counter(
            "callboard_collaboration",
            "What agents asked each other, by agent, way and what became of it.",
            ("agent", "way", "outcome"),
        )
        self._marks = metrics.counter(
            "callboard_marks",
            "Marks in the text of an agent, by family, and what became of them.",
            ("agent", "family", "outcome"),
        )
        self._hirings = metrics.counter(
            "callboard_hirings",
            "What conductors wished to make or change, and what became of it.",
            ("agent", "outcome"),
        )
        self._commits = metrics.histogram(
            "callboard_commit_seconds",
            "Seconds of one group commit, flush included.",
            (),
            SECONDS,
        )
        self._commit_size = metrics.counter(
            "callboard_commits", "Commits that became durable, in groups.", ()
        )

        self._activations = metrics.counter(
            "callboard_group_messages",
            "Messages of groups by why an agent answers, or why none does.",
            ("reason",),
        )
        self._checks = metrics.counter(
            "callboard_group_checks",
            "Questions to a model whom a message is for, by kind and outcome.",
            ("kind", "outcome"),
        )
        self._appointments = metrics.gauge(
            "callboard_appointments", "Appointments that are kept."
        )
        self._decisions = metrics.counter(
            "callboard_decisions",
            "Whether agents did anything by themselves, by agent and outcome.",
            ("agent", "outcome"),
        )
        self._slots = metrics.counter(
            "callboard_appointments_due",
            "Times at which something was due, by kind and what became of them.",
            ("kind", "outcome"),
        )
        self._late = metrics.histogram(
            "callboard_appointment_late_seconds",
            "Seconds from when something was due until it was on its way.",
            (),
            (*SECONDS, 3600, 86_400),
        )

    def activation(self, reason: str, count: int = 1) -> None:
        """Count why a message of a group is answered, or is not."""
        self._activations.add(count, reason)

    def check(self, kind: str, outcome: str) -> None:
        """Count what came of asking whom a message is for."""
        self._checks.add(1, kind, outcome)

    def appointments(self, count: int) -> None:
        """Show how many appointments there are."""
        self._appointments.set(count)

    def slot(self, kind: str, outcome: str, count: int = 1) -> None:
        """Count times at which something was due."""
        self._slots.add(count, kind, outcome)

    def decision(self, agent: str, outcome: str) -> None:
        """Count what an agent decided about doing anything by itself."""
        self._decisions.add(1, agent, outcome)

    def late(self, seconds: float) -> None:
        """Observe by how much something was late."""
        self._late.observe(max(0.0, seconds))

    def message(self, connector: str, outcome: str) -> None:
        """Count what became of a message."""
        self._messages.add(1, connector, outcome)

    def refusal(self, connector: str, reason: str) -> None:
        """Count somebody who was not let in."""
        self._refusals.add(1, connector, reason)

    def pairing(self, outcome: str) -> None:
        """Count what became of a request to be let in, or of a code."""
        self._pairings.add(1, outcome)

    def turn(self, agent: str, outcome: str) -> None:
        """Count a turn that ended."""
        self._turns.add(1, agent, outcome)

    def pace(self, agent: str, pace: str) -> None:
        """Count how a turn gets on, when that changes."""
        self._paces.add(1, agent, pace)

    def buffered(self, agent: str, outcome: str, count: int = 1) -> None:
        """Count what a busy conversation did with messages."""
        self._buffered.add(count, agent, outcome)

    def killed(self, kind: str) -> None:
        """Count an actor that was killed by hand."""
        self._killed.add(1, kind)

    def left_out(self, reason: str) -> None:
        """Count a notice that is not said."""
        self._left_out.add(1, reason)

    def stage(self, stage: str, seconds: float) -> None:
        """Observe how long a message stayed in a stage."""
        self._stages.observe(seconds, stage)

    def model_call(self, model: str, outcome: str, seconds: float) -> None:
        """Observe one model call."""
        self._model_calls.observe(seconds, model, outcome)

    def tokens(self, model: str, usage: Usage) -> None:
        """Count the tokens of one answer."""
        self._tokens.add(usage.input_tokens, model, "input")
        self._tokens.add(usage.output_tokens, model, "output")

    def account_call(self, account: str, model: str, outcome: str) -> None:
        """Count one call by where it went."""
        self._account_calls.add(1, account, model, outcome)

    def cool_downs(self, count: int, out: int) -> None:
        """Show how many backends cool down, and how many accounts are out."""
        self._cool_downs.set(count)
        self._accounts_out.set(out)

    def fallback(self, model: str, instead: str) -> None:
        """Count a call that could not go to the wanted model."""
        self._fallbacks.add(1, model, instead)

    def budget(self, action: str) -> None:
        """Count what a budget did."""
        self._budgets.add(1, action)

    def cost(self, model: str, dollars: float) -> None:
        """Count what was spent."""
        self._cost.add(max(dollars, 0.0), model)

    def tool_call(self, tool: str, outcome: str, seconds: float) -> None:
        """Observe one tool call."""
        self._tool_calls.observe(seconds, tool, outcome)

    def tool_denial(self, tool: str, reason: str) -> None:
        """Count a tool call that was not allowed."""
        self._denials.add(1, tool, reason)

    def approval(self, outcome: str) -> None:
        """Count what became of a question whether a tool may run."""
        self._approvals.add(1, outcome)

    def command(self, word: str, outcome: str) -> None:
        """Count a command of somebody."""
        self._commands.add(1, word, outcome)

    def tool_loop(self, agent: str, outcome: str) -> None:
        """Count a tool call that repeated itself."""
        self._loops.add(1, agent, outcome)

    def rewriting(self, what: str, cause: str, outcome: str, seconds: float) -> None:
        """Observe one compaction, flush or reset."""
        self._rewritings.observe(seconds, what, cause, outcome)

    def delivery(self, connector: str, state: str) -> None:
        """Count a delivery that ended."""
        self._deliveries.add(1, connector, state)

    def presence(self, connector: str, what: str, outcome: str) -> None:
        """Count one call for a draft or a reaction."""
        self._presence.add(1, connector, what, outcome)

    def delegation(self, agent: str, outcome: str) -> None:
        """Count a task handed on, or why it was not."""
        self._delegations.add(1, agent, outcome)

    def collaboration(self, agent: str, way: str, outcome: str) -> None:
        """Count what one agent wanted of another, by `consult` or in the open."""
        self._collaborations.add(1, agent, way, outcome)

    def mark(self, agent: str, family: str, outcome: str, count: int = 1) -> None:
        """Count what an agent asked for in its text, and why nothing came of it."""
        self._marks.add(count, agent, family, outcome)

    def hiring(self, agent: str, outcome: str) -> None:
        """Count what became of one wish of a conductor."""
        self._hirings.add(1, agent, outcome)

    def commit(self, seconds: float, count: int) -> None:
        """Observe one group commit."""
        self._commits.observe(seconds)
        self._commit_size.add(count)
