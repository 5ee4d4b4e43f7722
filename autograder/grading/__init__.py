"""One submission in, one result out."""
