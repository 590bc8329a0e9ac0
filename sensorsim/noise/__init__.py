"""Noise tables: kinds, design, certificates, files, and how they compare with other mechanisms."""
