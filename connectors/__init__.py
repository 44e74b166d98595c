"""Every edge: people, models, tools, web, and the app that wires them."""

import sys

# Why: httpx loads a command line of its own wherever rich and pygments happen to be
# installed, a third of the processor time until `serve` is ready. None is how Python
# is told that a module cannot be imported; httpx then does without it.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
