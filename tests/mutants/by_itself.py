"""Mistakes about agents that go on by themselves."""

from __future__ import annotations

from tests.mutants.mistake import Mutant

STORY = ("tests/stories/schedule/test_autonomous.py",)
RULES = ("tests/actors/schedule/test_decision.py",)

BY_ITSELF = (
    Mutant(
        "an agent's own runs beside each other",
        "actors/schedule/slots.py",
        '        if it.kind == "autonomous" and how == "done":\n',
        '        if it.kind == "autonomous" and how == "none":\n',
        STORY,
    ),
    Mutant(
        "a decision to act without a plan",
        "actors/schedule/decisions.py",
        "        if self.should_act and not any(",
        "        if not self.should_act and not any(",
        RULES,
    ),
    Mutant(
        "a run that keeps no tokens for its report",
        "actors/turn/limits.py",
        "self.taken + 2 * self._expected > self.most",
        "self.taken + self._expected > self.most",
        (*RULES, *STORY),
    ),
    Mutant(
        "what deciding took is not counted",
        "actors/turn/turn.py",
        "max(1, allowance.most - allowance.taken)",
        "max(1, allowance.most)",
        STORY,
    ),
    Mutant(
        "plans of long ago are carried out",
        "actors/turn/turn.py",
        "> inbound.received_at + PLAN_LASTS\n",
        "> inbound.received_at + 1e9 + PLAN_LASTS\n",
        STORY,
    ),
    Mutant(
        "slots that end without an answer count as done",
        "actors/schedule/slots.py",
        'if message.state != "replied" or message.reason in SUCCEEDED:',
        "if message.state:",
        STORY,
    ),
    Mutant(
        "a restart ends a pause",
        "actors/schedule/appointments.py",
        "        paused=was.paused,\n",
        "",
        (*STORY, "tests/actors/schedule/test_standing.py"),
    ),
)
