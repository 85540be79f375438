"""Viewership in Spark: the same lines that replicated brokers count, as tables (D4-H1, D4-H2, D4-H3).

    events ── bronze.raw_lines ──▶ lines ── silver ─┬▶ zap events ── gold ─▶ intervals ─▶ steps, minutes, windows
                                                    │                  └──▶ viewers now, changes
                                                    └▶ quarantine
Plain functions from DataFrames to DataFrames: they run in batch, under `writeStream` (`streaming`), and declared. Each
fixes its schema with its first and its last `select`. They need nothing of the connector: `events` is whatever has
position, published_at and payload. `(position, line)` is the key of a line, and the order in which brokers took it.
"""
