"""Configuration files: strict YAML whose mistakes name their line and the nearest key.

A file is read as a document that knows where its values stand (`document`), ``${VARIABLE}`` is replaced
(`interpolation`), pydantic models say what is valid (`fields`), and what they find wrong becomes errors (`mistakes`).
The configuration of a server and the file of a project are both read this way. Nothing here is imported before a file
is read.
"""
