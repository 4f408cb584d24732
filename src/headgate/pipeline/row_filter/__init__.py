"""Row filters: the condition of a filter's `where`, evaluated by Spark SQL over the typed row.

Two lazy stages come before the partition worker. `values.with_condition_values` takes the few
values that conditions refer to out of each message; `verdicts.with_verdicts` replaces them with a
verdict per row. Spark parses the text of a condition: only its columns are replaced, in place. An
error in evaluating a condition is a verdict on that row and does not stop the job.

A message is decoded here and again by the worker. That costs 7 to 10 µs; to hand its events over as
columns would cost 10 to 15 µs, to build and to read them.
"""
