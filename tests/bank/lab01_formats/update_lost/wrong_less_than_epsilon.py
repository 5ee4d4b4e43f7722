"""Compares with epsilon times the parameter."""


def update_lost(param, update, e, m):
    return abs(update) < abs(param) * 2.0**-m
