"""Helpers without knowledge of sensors: files, caches, progress, interrupts, resumable results."""
