"""``python -m evenhand`` is ``evenhand``."""

from __future__ import annotations

from evenhand.cli.command import main

if __name__ == "__main__":
    main()
