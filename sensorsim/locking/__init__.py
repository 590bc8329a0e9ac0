"""Lock files: the figures of a command for a build server, and what changed since."""
