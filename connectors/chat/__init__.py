"""Chat platforms: where people write to agents.

Each platform is a folder with parts of these names, if it has them: `transport` (begin
there), `account`, `listener`, `events`, `inbound`, `senders`, `markup`, `platform`,
`doctor`.
Several of them share the modules of this folder: `platforms.py` says what a platform is
and what the app gives it, `accounts.py` what platforms with an account for each agent
have in common, `inbound.py` how a message gets into the company, `outbox.py` what is
kept for clients that come back.
"""

__all__ = ["markup", "platforms", "server_transport", "terminal"]
