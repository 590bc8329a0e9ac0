"""Commands that are not declared in sensorsim.commands yet."""
