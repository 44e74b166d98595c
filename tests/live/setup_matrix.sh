#!/usr/bin/env bash
# Gets Synapse, the reference homeserver of Matrix, from PyPI, by name, into an
# environment of its own in the ignored folder .live/synapse/. Called by setup.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Pinned: the tests say which version they were written against.
version='1.163.2'
python=.live/synapse/bin/python
if [[ -x $python ]] && "$python" -m pip show -q "matrix-synapse" 2> /dev/null \
  && "$python" -m pip show matrix-synapse | grep -q "^Version: $version$"; then
  exit 0
fi
python3 -m venv .live/synapse
.live/synapse/bin/pip install -q "matrix-synapse==$version"
