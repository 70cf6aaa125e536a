"""The page of an audit: a function of the content of audit.json, and of nothing else."""
