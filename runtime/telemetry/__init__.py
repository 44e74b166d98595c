"""Logs and metrics of one process.

Every actor logs by an `EventLog` (`logs`) and counts in what the one `Metrics`
(`metrics`) made for it; `system_metrics` reports the kernel itself. `log_writer` keeps
the log from blocking the loop. Begin with `metrics`.
"""

__all__ = [
    "logs",
    "metrics",
    "redaction",
]
