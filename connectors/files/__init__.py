"""Files that Callboard reads and writes beside the database.

The app gives them to the domain through ports. Begin with the file of what you look
for: `blobs` (files that agents send), `personas`, `notebook`, `daily_log`, `projects`,
`receipt_key`, and `watch`, which tells of changes.
"""

__all__ = [
    "blobs",
    "daily_log",
    "notebook",
    "personas",
    "projects",
    "receipt_key",
    "watch",
]
