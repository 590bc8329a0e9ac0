"""What the paper prints, beside what holds."""
