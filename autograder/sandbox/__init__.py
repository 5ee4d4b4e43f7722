"""Runs students' code. The trust boundary lies between the folders `host` and `guest`."""
