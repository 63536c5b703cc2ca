"""sources: where a stream's rows come from, one file a kind; each can be read by tasks in shares,
and by Spark as a frame.
"""
