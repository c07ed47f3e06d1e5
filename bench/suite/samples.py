"""What was measured, run by run."""

import statistics


class Samples:
    """Name -> one dictionary of figures a run, in the order of the runs."""

    def __init__(self):
        self.by_name = {}

    def add(self, name, figures):
        self.by_name.setdefault(name, []).append(figures)

    def median(self, name, figure):
        return statistics.median(run[figure] for run in self.by_name[name])

    def ratio(self, name, other, figure):
        """The median of the runs' ratios: what disturbed one run disturbed both sides of it."""
        pairs = zip(self.by_name[name], self.by_name[other], strict=True)
        return statistics.median(ours[figure] / theirs[figure] for ours, theirs in pairs)
