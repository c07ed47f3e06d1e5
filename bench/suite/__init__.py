"""The benchmark: `python3 -m suite`, or rather bench/run.sh, which builds first."""
