"""A scheme whose clients take links from each other, for tests. Its brokers are those of `tree` under another name."""

KIND = "taking"
