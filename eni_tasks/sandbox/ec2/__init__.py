"""An EC2 API in memory, over real HTTP, with an oracle for tests.

boto3 talks to it in the sandbox and in the tests. It serves the calls that this system makes and refuses what
EC2 refuses, with EC2's codes and texts. From the bottom up: `records` and `address_pools` hold data, `world` keeps it,
`interfaces` and `instances` decide what is allowed, `query`, `describe` and `render` speak the query protocol,
`actions` names the calls, `api` puts rates and faults (`knobs`) in front of them, `server` serves. `admin` is what
tests do from outside EC2, and its client, `oracle` the checks.
"""
