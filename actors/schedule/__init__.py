"""Appointments: reminders, tasks, cron jobs and heartbeats, carried out once each.

The actor in `scheduler` finds what is due and commits an inbound message for it;
answers ask it by `messages` to add or change appointments. Begin with `appointments`
and `recurrence`, which are pure, then `slots`, which makes the one commit of a run.
"""

__all__ = [
    "appointments",
    "booking",
    "conditions",
    "decisions",
    "messages",
    "occasions",
    "quiet_hours",
    "recurrence",
    "requests",
    "rows",
    "scheduler",
]
