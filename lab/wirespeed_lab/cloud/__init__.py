"""Machines of EC2 for a measurement: launched, used, and gone again.

Owns what is launched, what it may cost, and that nothing is left. Refuses to launch without prices
that a person has confirmed, and above a budget. Everything carries a tag; each machine ends itself
when its time is over, whatever has become of whoever launched it.
"""
