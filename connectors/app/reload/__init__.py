"""Applies changed settings to a running company.

`serve` and `chat` run it beside the company. Begin with `reload`, which watches the
files; `rules` says which settings may change while it runs, `apply` tells the actors;
`by_hand` changes the files for the page.
"""

__all__ = [
    "apply",
    "by_hand",
    "reload",
    "rules",
]
