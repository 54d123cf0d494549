"""The command that a wheel brings. Not in the package, as it needs nothing of what the package imports."""
import os
import sys
from pathlib import Path


def main() -> None:
    command = Path(__file__).resolve().parent / "peridot" / "bin" / "peridot"
    try:
        os.execv(command, [str(command), *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"peridot: this package has the library alone, and no command: {error}")


if __name__ == "__main__":
    main()
