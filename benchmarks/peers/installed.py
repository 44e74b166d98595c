"""Who else can do what a benchmark measures, and whether they are installed here.

A peer is a module `peer_<x>.py` with two names: `ROUNDS`, from a benchmark's name to
the round that does the same, and `SHARE`, by which the plan's size is multiplied so
that a slow peer does not take the whole run.
"""

from __future__ import annotations

import importlib

import msgspec

from benchmarks.figure import Figure, Plan, Round

MODULES = {
    "apsw": "benchmarks.peers.peer_apsw",
    "apsw and trio": "benchmarks.peers.peer_apsw_trio",
    "bare loop": "benchmarks.peers.peer_bare",
    "its libraries": "benchmarks.peers.peer_libraries",
    "pykka-threads": "benchmarks.peers.peer_pykka",
    "trio-channel": "benchmarks.peers.peer_trio",
    "autogen-core": "benchmarks.peers.peer_autogen",
    "autogen-core, openai": "benchmarks.peers.peer_autogen_http",
    "python-socketio": "benchmarks.peers.peer_socketio",
    "xoscar": "benchmarks.peers.peer_xoscar",
    "vendor-sdks": "benchmarks.peers.peer_vendors",
}
HOW_TO_INSTALL = "pip install -e '.[peers]'"


class Peer(msgspec.Struct, frozen=True):
    """Another way to do what Callboard does."""

    name: str
    rounds: dict[str, Round]
    share: float = 1.0

    def measure(self, benchmark: str, plan: Plan) -> list[Figure]:
        """Run one round of a benchmark that is in `rounds`."""
        size = max(1, int(plan.size * self.share))
        return self.rounds[benchmark](msgspec.structs.replace(plan, size=size))


def load() -> tuple[list[Peer], list[str]]:
    """Import the peers.

    Returns:
        Those that are installed; and for each other one a line that says how to
        install it.
    """
    found: list[Peer] = []
    missing: list[str] = []
    for name, module in MODULES.items():
        try:
            peer = importlib.import_module(module)
        except ImportError as error:
            missing.append(f"{name} is left out ({error}): {HOW_TO_INSTALL}")
        else:
            found.append(Peer(name, peer.ROUNDS, peer.SHARE))
    return found, missing
