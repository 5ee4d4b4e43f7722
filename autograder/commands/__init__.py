"""The commands of `autograder`, by what a person does: each module adds its own to the parser."""
