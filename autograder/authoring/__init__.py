"""From a lab's source to what students get: build, lint, pull, release."""
