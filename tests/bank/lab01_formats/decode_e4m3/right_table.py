"""A table of all 256 values, made by counting up in gaps."""
import numpy as np

table = []
value, gap = 0.0, 2.0**-9
for pattern in range(128):
    table.append(value)
    if pattern >= 16 and pattern % 8 == 0:
        gap *= 2
    value += gap
table[127] = np.nan
table += [-value for value in table]


def decode_e4m3(bits):
    return table[bits]
