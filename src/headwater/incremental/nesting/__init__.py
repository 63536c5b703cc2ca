"""Nesting: circuits inside circuits, that run until nothing changes any more.

Inside, time has two dimensions: the step of the outer circuit (the epoch) and the iteration. A change at (epoch,
iteration) is the difference to the epoch before of the difference to the iteration before, so both a long recursion and
a long history cost what changes. That is what makes deletes right: what a deleted row had contributed is taken back in
the iterations in which it had been contributed.

State is kept with the iteration as a column. When a change at iteration ``i`` meets state from iteration ``j`` of an
earlier epoch, what follows belongs to iteration ``max(i, j)``; if that is later, it waits there.
"""
