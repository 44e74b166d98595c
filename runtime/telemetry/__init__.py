"""Logs and metrics of one process.

Every actor logs by an `EventLog` (`logs`) and counts in what the one `Metrics`
(`metrics`) made for it, where the kernel reports itself, too. The log does not
block the loop, and `log_file` keeps its file within bounds. Begin with `metrics`.
"""

__all__ = ["log_file", "logs", "metrics"]
