"""Adds Python floats."""


def update_lost(param, update, e, m):
    return param + update == param
