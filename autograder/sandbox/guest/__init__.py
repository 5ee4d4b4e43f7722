"""Runs inside the sandbox. Nothing here is secret, and nothing it sends is believed."""
