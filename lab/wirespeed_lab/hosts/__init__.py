"""One measurement on several machines at once.

Owns the agent that runs on each host, the coordinator that starts them together and stops them all
when one is missing or dies, and what is made of their samples: throughput over the time in
which all of them were running, and a record that can be verified. Refuses to run a command that
came over the wire: an agent starts drivers of its own registry, under their names, and nothing
else.
"""
