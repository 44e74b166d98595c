"""Files that Callboard reads and writes beside the database.

The app gives them to the domain through ports. Begin with the file of what you look
for: `archive` (all of a company in one file), `blobs` (files that agents send),
`personas` (and how changes are noticed), `notebook` (projects, reported bugs and daily
logs), `receipt_key`.
"""

__all__ = ["archive", "blobs", "notebook", "personas", "receipt_key"]
