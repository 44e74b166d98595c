"""Who people are, and who may write: accounts, links, admission, pairing, owners.

Connectors ask `admission` before they take a message in; the actors in `people`,
`pairing` and `owners` write the rows. Begin with `access`, the pure rule of who may
write, and `identity`, the pure rule of which accounts are one person.
"""

__all__ = [
    "access",
    "admission",
    "guests",
    "identity",
    "lookup",
    "owners",
    "pairing",
    "pairing_rows",
    "pairing_rules",
    "people",
    "rows",
]
