"""What agents can do, behind the port `Tool` of `actors.ports`.

`app` makes the tools that agents have, and the settings check their names, both from
`registry`: add a tool there. Begin with `calculate` as the shortest example;
`arguments` decodes what a model gives.
"""

__all__ = [
    "arguments",
    "registry",
    "workspace",
]
