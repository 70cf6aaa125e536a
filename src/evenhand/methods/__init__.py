"""Methods: which point of the target's region a person is shown."""
