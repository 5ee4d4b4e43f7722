"""What shows that the grader is right: the answer bank, mutants, sampled classes, calibration."""
