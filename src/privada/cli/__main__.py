"""``python -m privada.cli``."""

from privada.cli import main

if __name__ == "__main__":
    main()
