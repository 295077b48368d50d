"""The lab: measures clients at the process boundary and keeps what it saw.

``figures`` runs the benchmarks that the project promises, ``demo`` moves a
small data set and shows what it cost. Both start the embedded server on one
core and every client on another, drive the clients round by round
(``contender``), and judge by the statistics in ``stats``. A record keeps every
sample; ``report`` recomputes its table from the record alone.
"""
