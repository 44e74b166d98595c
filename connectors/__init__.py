"""Every edge: people, models, tools, web, and the app that wires them."""
