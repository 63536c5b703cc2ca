"""lake: which rows are true, and since when?"""
