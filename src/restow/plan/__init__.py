"""What to change and in which order: pure, from values to values.

steps       a move in parts that never have too many copies
admission   what may be under way at the same time
schedule    who begins next
"""
