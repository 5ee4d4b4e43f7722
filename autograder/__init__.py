"""The instructor's side: it grades notebooks of untrusted code. Nothing here reaches a student."""
