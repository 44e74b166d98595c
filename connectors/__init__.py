"""Every edge: people, models, tools, web, and the app that wires them."""

import sys

__all__ = ["main"]

# Why: httpx loads a command line of its own wherever rich and pygments happen to be
# installed, a third of the processor time until `serve` is ready. None is how Python
# is told that a module cannot be imported; httpx then does without it.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]


def main() -> None:
    """Begin the program: load the command line, and run it."""
    try:
        # Why here: it takes a while, and Ctrl-C meanwhile shows no traceback.
        from connectors.cli import main as run  # noqa: PLC0415
    except KeyboardInterrupt:
        raise SystemExit(130) from None  # as `INTERRUPTED` there
    run()
