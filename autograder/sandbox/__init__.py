"""Where students' code runs. The trust boundary lies between the folders `host` and `guest`."""
