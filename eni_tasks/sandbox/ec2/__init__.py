"""An EC2 API that runs on a laptop, in memory, over real HTTP; also the oracle of the tests.

It is the twin of the outside that boto3 talks to in the sandbox and in the tests. It serves the calls
that this system makes and refuses what EC2 refuses, with EC2's codes and texts; it never imitates what
nobody asks for. From the bottom up: `records` and `tables` keep, `interfaces` and `instances` decide,
`reading` selects, `render` and `query` speak the query protocol, `actions` names the calls, `sandbox`
puts throttles and faults in front of them, `server` serves.
"""
