"""Measurements: predictions compared with measured values, on the CPU and on a GPU.

The GPU measurements need neither nbgrader nor Jupyter, so that they run on a GPU machine with only
Python, torch, numpy, matplotlib, pytest and transformers.
"""
