"""`python -m headwater.cli`, for where the script `headwater` is not on the PATH."""

import sys

from headwater.cli import main

if __name__ == "__main__":
    sys.exit(main())
