"""The shapes of settings: Structs with types, bounds and defaults.

`app.AppConfig` is the whole file. Each chat platform has its settings in its own
`platform.py`. `connectors/settings/` reads files and checks that settings fit together.

No module of such Structs, here or in `actors/config/`, imports `annotations` from
`__future__`: each start would have to evaluate hundreds of texts, which takes 15 ms.
"""

__all__ = ["app", "checks", "hooks", "mcp", "models", "shipped", "tools"]
