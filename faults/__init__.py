"""Faults on purpose: killed processes, full disks, damaged files, lost clusters; see ``python -m faults``."""
