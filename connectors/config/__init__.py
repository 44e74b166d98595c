"""The shapes of settings: Structs with types, bounds and defaults.

`app.AppConfig` is the whole file. Each chat platform has its settings in its own
`platform.py`. `connectors/settings/` reads files and checks that settings fit together.
"""

__all__ = ["app", "checks", "hooks", "mcp", "models", "shipped", "tools"]
