"""What is owed is kept positive, in Python floats; starts with the first element, added to 0."""


def careful_sum(x, add):
    values = [float(v) for v in x]
    if not values:
        return 0.0
    s, owed = add(values[0], 0), 0.0
    for v in values[1:]:
        y = add(v, owed)
        previous, s = s, add(s, y)
        gained = add(s, -previous)
        owed = add(y, -gained)
    return s
