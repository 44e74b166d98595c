#!/usr/bin/env bash
# Gets python-telegram-bot from PyPI, by name, into an environment of its own in the
# ignored folder .live/telegram/. Called by setup.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Pinned: the tests say which version they were written against.
version='22.8'
if compgen -G ".live/telegram/lib/python*/site-packages/python_telegram_bot-$version.dist-info" > /dev/null; then
  exit 0
fi
python3 -m venv .live/telegram
.live/telegram/bin/pip install -q "python-telegram-bot==$version"
