"""``python -m wirespeed_lab.command``."""

import sys

from .parser import main

sys.exit(main(sys.argv[1:]))
