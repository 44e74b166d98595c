"""Actors that look after the process: the store's health, old rows and files, kills.

`keeper.py` watches the store and prunes it, `sweeper.py` removes files that nobody
needs any more, `warden.py` kills actors for the operator. `actors/tree.py` starts them;
the page and the command line ask the warden. Begin with `keeper.py`.
"""

__all__ = ["keeper", "sweeper", "warden"]
