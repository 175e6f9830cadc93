"""Evidence as tables, figures and pages."""
