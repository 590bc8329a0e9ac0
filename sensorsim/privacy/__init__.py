"""Noise tables with certificates, sensitivities, and what a mechanism has spent."""
