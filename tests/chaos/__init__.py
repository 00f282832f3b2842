"""A fleet under changing demand while everything around it fails, and the judgement when calm returns.

`make chaos ARGS="--seed 7 --seconds 60 --nodes 30"`; a short form is one of the tests. The seed decides
what happens and when; what the processes make of it depends on the machine, too.
"""
