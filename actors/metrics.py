"""What the domain counts on a message's way; all labels are bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actors.messages.inbound import Usage
    from runtime.telemetry.metrics import Metrics

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
    """The metrics of the domain. To add one, add an attribute in `__init__`.

    A method stands here only where one call updates several metrics.
    """

    def __init__(self, metrics: Metrics) -> None:  # noqa: PLR0915  a table, no steps
        self.damaged = metrics.gauge(
            "callboard_store_damaged",
            "1 from when the database is found to be damaged, else 0.",
        )
        self._wal = metrics.gauge(
            "callboard_store_wal_bytes",
            "Size of the database's -wal; another program that reads lets it grow.",
        ).only
        self.messages = metrics.counter(
            "callboard_messages",
            "Messages by connector and what became of them.",
            ("connector", "outcome"),
        )
        self.refusals = metrics.counter(
            "callboard_refusals",
            "Messages and requests that were not let in, by connector and reason.",
            ("connector", "reason"),
        )
        self.pairings = metrics.counter(
            "callboard_pairings",
            "Requests to be let in, by what became of them.",
            ("outcome",),
        )
        self.turns = metrics.counter(
            "callboard_turns", "Turns by agent and outcome.", ("agent", "outcome")
        )
        self.turns_waiting = metrics.gauge(
            "callboard_turns_waiting",
            "Turns that wait for others of their model to end, by model.",
            ("model",),
        )
        self.turns_running = metrics.gauge(
            "callboard_turns_running",
            "Turns that are under way, by model.",
            ("model",),
        )
        self.paces = metrics.counter(
            "callboard_turn_paces",
            "Turns that became long-running, stalled or stuck, went on, or were gone.",
            ("agent", "pace"),
        )
        self.buffered = metrics.counter(
            "callboard_buffered",
            "What a busy conversation did with messages, by agent and outcome.",
            ("agent", "outcome"),
        )
        self.killed = metrics.counter(
            "callboard_actors_killed", "Actors that were killed by hand.", ("kind",)
        )
        self.left_out = metrics.counter(
            "callboard_notices_left_out",
            "Notices that people were not told: refusals told lately, floods of them.",
            ("reason",),
        )
        self.stages = metrics.histogram(
            "callboard_stage_seconds",
            "Seconds a message spent in one stage of its way.",
            ("stage",),
            SECONDS,
        )
        self.model_calls = metrics.histogram(
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
        self.account_calls = metrics.counter(
            "callboard_account_calls",
            "Calls by account, model and how they ended.",
            ("account", "model", "outcome"),
        )
        self._cool_downs = metrics.gauge(
            "callboard_models_cooling_down",
            "Models on an account that are left alone now.",
        )
        self._accounts_out = metrics.gauge(
            "callboard_accounts_refused",
            "Accounts that did not take their key when they were asked last.",
        )
        self.fallbacks = metrics.counter(
            "callboard_fallbacks",
            "Calls that went to another model than the wanted one; none: to no one.",
            ("model", "instead"),
        )
        self.budgets = metrics.counter(
            "callboard_budget_actions",
            "What budgets did: soft, downgrade, held, stop; unread: a row is damaged.",
            ("action",),
        )
        self._cost = metrics.counter(
            "callboard_cost_dollars", "US dollars spent, by model.", ("model",)
        )
        self.tool_calls = metrics.histogram(
            "callboard_tool_call_seconds",
            "Seconds of one tool call, by tool and outcome.",
            ("tool", "outcome"),
            SECONDS,
        )
        self.denials = metrics.counter(
            "callboard_tool_denials",
            "Tool calls that were not allowed, by tool and reason.",
            ("tool", "reason"),
        )
        self.commands = metrics.counter(
            "callboard_commands",
            "Commands of people, by their word and what came of them.",
            ("command", "outcome"),
        )
        self.approvals = metrics.counter(
            "callboard_approvals",
            "Questions whether a tool may run, by what became of them.",
            ("outcome",),
        )
        self.loops = metrics.counter(
            "callboard_tool_loops",
            "Tool calls that repeated themselves, by agent and what was done.",
            ("agent", "outcome"),
        )
        self.rewritings = metrics.histogram(
            "callboard_rewriting_seconds",
            "Seconds until a conversation was summed up, gone through, or ended.",
            ("what", "cause", "outcome"),
            SECONDS,
        )
        self.deliveries = metrics.counter(
            "callboard_deliveries",
            "Deliveries by connector and how they ended.",
            ("connector", "state"),
        )
        self.presence = metrics.counter(
            "callboard_presence",
            "Drafts and reactions by connector, and what became of each call.",
            ("connector", "what", "outcome"),
        )
        self.delegations = metrics.counter(
            "callboard_delegations",
            "Tasks handed on by an agent, and refusals by reason.",
            ("agent", "outcome"),
        )
        self.collaborations = metrics.counter(
            "callboard_collaboration",
            "What agents asked each other, by agent, way and what became of it.",
            ("agent", "way", "outcome"),
        )
        self.marks = metrics.counter(
            "callboard_directives",
            "Directives in an agent's text, by family, and what became of them.",
            ("agent", "family", "outcome"),
        )
        self.hirings = metrics.counter(
            "callboard_hirings",
            "What conductors wished to make or change, and what became of it.",
            ("agent", "outcome"),
        )
        self._commits = metrics.histogram(
            "callboard_commit_seconds",
            "Seconds of one group commit, flush included.",
            (),
            SECONDS,
        ).only
        self._commit_size = metrics.counter(
            "callboard_commits", "Commits that became durable, in groups."
        ).only

        self.activations = metrics.counter(
            "callboard_group_messages",
            "Messages of groups by why an agent answers, or why none does.",
            ("reason",),
        )
        self.checks = metrics.counter(
            "callboard_group_checks",
            "Questions to a model whom a message is for, by kind and outcome.",
            ("kind", "outcome"),
        )
        self.appointments = metrics.gauge(
            "callboard_appointments", "Appointments that are kept."
        )
        self.decisions = metrics.counter(
            "callboard_decisions",
            "Whether agents did anything by themselves, by agent and outcome.",
            ("agent", "outcome"),
        )
        self.slots = metrics.counter(
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

    def late(self, seconds: float) -> None:
        """Observe by how much something was late."""
        self._late.observe(max(0.0, seconds))

    def tokens(self, model: str, usage: Usage) -> None:
        """Count the tokens of one answer."""
        self._tokens.add(usage.input_tokens, model, "input")
        self._tokens.add(usage.output_tokens, model, "output")

    def cool_downs(self, count: int, out: int) -> None:
        """Show how many backends cool down, and how many accounts are out."""
        self._cool_downs.set(count)
        self._accounts_out.set(out)

    def cost(self, model: str, dollars: float) -> None:
        """Count what was spent."""
        self._cost.add(max(dollars, 0.0), model)

    def commit(self, seconds: float, count: int, wal_bytes: int) -> None:
        """Observe one group commit, and how large the WAL is now."""
        self._wal.set(wal_bytes)
        self._commits.observe(seconds)
        self._commit_size.inc(count)
