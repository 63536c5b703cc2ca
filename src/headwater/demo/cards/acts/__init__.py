"""The acts, one file each: a function that does something real to a stage, and checks what must be true after it."""
