"""The command that a wheel brings. Not in the package, as it needs nothing of what the package imports."""
import os
import signal
import subprocess
import sys
from pathlib import Path


def main() -> None:
    windows = sys.platform == "win32"
    command = Path(__file__).resolve().parent / "peridot" / "bin" / ("peridot.exe" if windows else "peridot")
    arguments = [str(command), *sys.argv[1:]]
    try:
        if windows:   # whose exec gives the console back at once; Ctrl-C is for the command alone
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            sys.exit(subprocess.call(arguments))
        os.execv(command, arguments)
    except OSError as error:
        sys.exit(f"peridot: this package has the library alone, and no command: {error}")


if __name__ == "__main__":
    main()
