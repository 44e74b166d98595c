"""What agents can do, behind the port `Tool`."""
