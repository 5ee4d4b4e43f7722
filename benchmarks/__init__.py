"""Measurements: predictions beside measured values, on the CPU and on a GPU.

Nothing here needs nbgrader or Jupyter, so that it runs on a GPU machine with only Python, torch,
numpy, matplotlib, pytest and transformers.
"""
