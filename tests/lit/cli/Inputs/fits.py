"""fits.py N: is every line of standard input at most N columns wide?  Prints those that are not."""

import sys

wide = [line for line in sys.stdin.read().splitlines() if len(line) > int(sys.argv[1])]
print("\n".join(wide))
sys.exit(bool(wide))
