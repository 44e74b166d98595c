"""Logs and metrics of one process.

Every actor logs by an `EventLog` (`logs`) and counts in what the one `Metrics`
(`metrics`) made for it, where the kernel reports itself, too. `log_writer` keeps the
log from blocking the loop, `log_file` its file within bounds. Begin with `metrics`.
"""

__all__ = ["log_file", "logs", "metrics"]
