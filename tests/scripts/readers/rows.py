"""The figures of each flowop, composites too."""
import re
import sys

row = r"^(\S+) +(?:(\d+)ops +)?(\d+)ops/s +([\d.]+)mb/s +([\d.]+)ms/op"
for name, ops, rate, bandwidth, latency in re.findall(row, sys.stdin.read(), re.MULTILINE):
    print("row", name, ops or "-", rate, bandwidth, latency)
