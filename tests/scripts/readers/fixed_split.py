"""Cuts the output at texts that are always the same."""
import sys

run = sys.stdin.read().split("Running...\n")[1]
took = run.split("Run took ")[1].split(" seconds...")[0]
summary = run.split("IO Summary:")[1].split("Shutting down processes")[0]
print("seconds", took)
print("ops", summary.split(" ops")[0].strip())
print("bandwidth", summary.split("mb/s")[0].split(" ")[-1])
print("rows", len(run.split("Per-Operation Breakdown\n")[1].split("IO Summary")[0].split("/op")) - 1)
