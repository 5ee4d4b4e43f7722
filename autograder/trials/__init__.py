"""Checks of the grader itself: the answer bank, mutants, sampled classes, calibration."""
