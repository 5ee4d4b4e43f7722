"""What an instructor decides: semesters, attempts, lateness, waivers."""
