"""The instructor's side: grades notebooks of untrusted code. Students get none of it."""
