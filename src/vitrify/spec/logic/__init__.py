"""Logics over positions: past-time temporal logic and counting programs (C-RASP)."""
