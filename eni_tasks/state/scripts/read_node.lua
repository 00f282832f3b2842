-- Read everything that a decision about one node looks at.
--
-- KEYS    1: nodes, 2: versions, 3: memory, 4: journal, 5: infrastructure, 6: ledger, 7: cooldowns, 8: limits,
--         9: state generation, 10: its times, 11: switches, 12: publish failures,
--         13: pending pods, 14: subnets without a /28 prefix
-- ARGV    1: node name, 2: prefix of facts, 3: prefix of the sets of claimants (same hash tag as KEYS), then the fields of
--         facts to read
-- Answer  {object, memory, journal, infrastructure's stamp, ledger, cooldowns, time (ms), facts, limits, state
--         generation, when it began (ms), why the last read of EC2
--         failed, {node that the instance belongs to, or nothing}, why the object could not be written,
--         how many of its pods wait, how often the objects went back, subnets without a prefix}
--
-- Why a script: the object says which instance's facts and which type's limits are needed, and a second round trip
-- for them would be the greater part of what a run costs. Their key can't be in KEYS for the same reason; it lives
-- where the others live.

local name = ARGV[1]
local known = redis.call('HGET', KEYS[2], name) or ''
local instance, instance_type = string.match(known, '^%S* %S* (%S*) (%S*)$')
local facts = redis.call('HMGET', ARGV[2] .. (instance or ''), unpack(ARGV, 4))
return {
  redis.call('HGET', KEYS[1], name),
  redis.call('HGET', KEYS[3], name),
  redis.call('HGET', KEYS[4], name),
  redis.call('HGET', KEYS[5], 'described_at'),
  redis.call('HGETALL', KEYS[6]),
  redis.call('ZRANGE', KEYS[7], 0, -1, 'WITHSCORES'),
  now_ms(),
  facts,
  redis.call('HGET', KEYS[8], instance_type or ''),
  redis.call('GET', KEYS[9]),
  redis.call('HGET', KEYS[10], 'began_at'),
  redis.call('HGET', KEYS[11], 'read_failure'),
  redis.call('ZRANGE', ARGV[3] .. (instance or ''), 0, 0),
  redis.call('HGET', KEYS[12], name),
  redis.call('HGET', KEYS[13], name),
  redis.call('HGET', KEYS[10], 'restores'),
  redis.call('HGETALL', KEYS[14]),
}
