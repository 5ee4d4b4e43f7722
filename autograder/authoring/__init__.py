"""From a lab's source to its release: build, lint, pull, release."""
