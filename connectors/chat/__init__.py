"""Transports: where people write."""
