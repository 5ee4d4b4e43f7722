"""The instructor's rules: semesters, attempts, lateness, waivers."""
