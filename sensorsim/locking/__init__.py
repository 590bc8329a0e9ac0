"""Locks: the figures of a command in a text file, and what has changed since. For a build server."""
