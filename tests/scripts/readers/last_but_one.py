"""The result is in the line before the last."""
import sys

line = sys.stdin.read().splitlines()[-2]
words = line.split("IO Summary:")[1].replace(",", " ").split()
print("ops", words[0])
print("rate", words[2])
print("bandwidth", [word for word in words if word.endswith("mb/s")][0][:-4])
