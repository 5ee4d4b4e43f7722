"""The exact loss by six additions (TwoSum), which is more than are allowed."""


def careful_sum(x, add):
    total = owed = 0.0
    for element in x:
        y = add(element, owed)
        t = add(total, y)
        of_y = add(t, -total)
        of_total = add(t, -of_y)
        owed = add(add(total, -of_total), add(y, -of_y))
        total = t
    return total
