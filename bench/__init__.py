"""Marvec beside what a user would pick instead: same model, same texts, same load, in one run.

model.py, large_model.py   the models
corpora.py                 the texts, made from sentences/
load.py                    clients and texts a request; drive.py sends them, connection.py speaks HTTP
systems/                   who takes part; peers/ holds the code of those that must be written, requirements/ their pins
venv.py, server.py         a peer's own environment; a server from its start to its end
reference.py               what the right answer is
comparison.py              the interleaved run
machine.py, result.py      what was measured, where, and how it is written down
summary.py                 medians, spreads, ratios
table.py, plots.py, report.py   what a reader sees
cli.py                     the commands: `python -m bench --help`
"""

from __future__ import annotations
