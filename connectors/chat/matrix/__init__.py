"""Matrix: several agents' accounts on one homeserver, in unencrypted rooms.

Begin with `transport.py`. Pure are `wire`, `errors`, `room`, `events`, `content`,
`markup` and `invites`; `homeserver` talks; `arrivals` brings in what people write,
`account` and `syncing` keep one account in step with the server.

Source of all wire facts: spec.matrix.org, client-server API, v1.11 and later.
"""
