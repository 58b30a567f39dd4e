"""The first numbers with the units of the summary, wherever they are."""
import re
import sys

text = sys.stdin.read()
print("ops", re.search(r"(\d+) +ops\b", text).group(1))
print("rate", re.search(r"([\d.]+) *ops/s,? +\(?\d+/\d+", text).group(1))
print("any_rate", re.search(r"([\d.]+) ops/s", text).group(1))
print("reads", re.search(r"(\d+)/\d+ r", text).group(1))
