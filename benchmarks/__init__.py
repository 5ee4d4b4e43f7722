"""Measurements: predictions beside what is measured, on the CPU and on a GPU.

Nothing here needs nbgrader or Jupyter, so that it runs on a GPU machine that has only Python,
torch, numpy, matplotlib, pytest and transformers.
"""
