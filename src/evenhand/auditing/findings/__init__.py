"""What was measured, as the parts of audit.json: one module a part."""
