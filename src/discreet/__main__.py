"""`python -m discreet` is `discreet`."""

from __future__ import annotations

if __name__ == "__main__":
    try:
        from discreet.cli import main

        main()
    except KeyboardInterrupt:  # before `main` could see to it itself
        from discreet.cli import interrupted

        interrupted("discreet: interrupted.\n")
