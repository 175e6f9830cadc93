"""The protocol of learned claims: plans older than their runs, stored measurements, verdicts per statement."""
