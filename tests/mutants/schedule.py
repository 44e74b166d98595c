"""Mistakes about appointments."""

from __future__ import annotations

from tests.mutants.mistake import Mutant

PROOFS = (
    "tests/schedule_proofs/test_machine.py",
    "tests/schedule_proofs/test_jumps.py",
)

SCHEDULE = (
    Mutant(
        "a slot stored under a new name each time",
        "actors/schedule/occasions.py",
        "        platform_id=name,\n",
        "        platform_id=name + message_id,\n",
        (
            "tests/actors/schedule/test_scheduler.py",
            "tests/actors/schedule/test_scheduler_ends.py",
        ),
    ),
    Mutant(
        "a clock that went back, not noticed",
        "actors/schedule/scheduler.py",
        "        went_back = now < self._last_wall - WENT_BACK\n",
        "        went_back = False\n",
        PROOFS,
    ),
    Mutant(
        "a slot begun beside the one before",
        "actors/schedule/appointments.py",
        '    if it.repeat and previous == "open":\n',
        '    if it.paused and previous == "open":\n',
        PROOFS,
    ),
    Mutant(
        "by hand and by the clock at one second, twice",
        "actors/schedule/appointments.py",
        "            slots += [each for each in due if each not in slots]\n",
        "            slots += due\n",
        (
            "tests/actors/schedule/test_scheduler.py",
            "tests/actors/schedule/test_scheduler_ends.py",
        ),
    ),
    Mutant(
        "an excuse that counts as success",
        "actors/schedule/slots.py",
        '    if message.state != "replied" or message.reason in SUCCEEDED:\n',
        "    if True:\n",
        (
            "tests/actors/schedule/test_scheduler.py",
            "tests/actors/schedule/test_scheduler_ends.py",
        ),
    ),
    Mutant(
        "a clock that is never looked at again",
        "actors/schedule/scheduler.py",
        "            wait = min(max(0.0, at - self._services.clock.wall()), LOOK_EVERY)"
        "\n",
        "            wait = max(0.0, at - self._services.clock.wall())\n",
        PROOFS,
    ),
)
