"""Kernels: the loops that have to be machine code.

Pure functions on numpy arrays, compiled by numba at their first use and kept in a cache, with the GIL released. They
know nothing of circuits or files: a row is some 64-bit words (`headwater.kernels.words`), a set of rows is a matrix of
words with a hash for each row. This room alone imports numba, and nobody imports it before it is needed: numba takes a
second to load.
"""
