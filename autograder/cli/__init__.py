"""The command `autograder`, by what people do with it."""
