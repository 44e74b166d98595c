"""Slack: several agents' apps in one workspace, by Socket Mode or the Events API.

Begin with `transport.py`. Pure are `errors`, `events`, `words`, `moments`, `signature`,
`content` and `emoji`; `wire` says what is asked of Slack, and `sdk` asks it through
slack_sdk on the edge's loop; `arrivals` and `handing` bring in what people write,
`account` and `following` keep one app in step with Slack, `calls` takes what Slack
sends to the HTTP server.

Source of all wire facts: docs.slack.dev, and slack_sdk 3.
"""
