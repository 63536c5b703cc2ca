"""incremental: what changed in the answer?"""
