-- Accept what a describe call showed of an instance, if nothing newer is known.
--
-- KEYS    1: facts, 2: times of the state generation
-- ARGV    1: interfaces (JSON), 2: when the read started (ms), 3: the version it was compared with,
--         4: "1" if it lacks something that was known, 5: settle time of EC2's reads (ms), 6: lifetime (ms),
--         7: "1" if the object shows that the node was served before, 8: what of the interfaces the read lacks
--         (JSON), or ""
-- Answer  1, or 0 if the instance must be read again
--
-- Why a script: a mutation may end between the comparison and the write, and reads overtake each other.

-- Redis was emptied, or was always empty: it has no record of earlier mutations, so a read must have started
-- after all that may have happened before.
local began_at, quiet_until = unpack(redis.call('HMGET', KEYS[2], 'began_at', 'quiet_until'))
if not number(began_at) or tonumber(ARGV[2]) < math.max(number(began_at), number(quiet_until) or 0) then
  return 0
end
local described_at, mutated_at, version = unpack(redis.call('HMGET', KEYS[1], 'described_at', 'mutated_at', 'version'))
local started_at = tonumber(ARGV[2])
described_at, mutated_at = number(described_at) or 0, number(mutated_at)
if not mutated_at and ARGV[7] == '1' then
  mutated_at = number(began_at)
end
-- A hash without interfaces is one that was deleted, and that the answer of a mutation has brought back: the read was
-- compared with nothing, and there is nothing that it could overwrite.
local compared_with = redis.call('HEXISTS', KEYS[1], 'interfaces') == 1 and number(version) or 0
if compared_with ~= tonumber(ARGV[3])
  or started_at < described_at
  or (mutated_at and started_at < mutated_at + tonumber(ARGV[5])) then
  return 0
end
add_to_field(KEYS[1], 'version', 1)
redis.call('HDEL', KEYS[1], 'tries', 'problem', 'lacking')
if ARGV[4] == '1' then
  -- The time of the first such read stays: a second one confirms it only if it started well after the first.
  redis.call('HSETNX', KEYS[1], 'unconfirmed_since', ARGV[2])
  -- A first read may be unconfirmed too: what it showed is stored for comparison only.
  redis.call('HSETNX', KEYS[1], 'interfaces', ARGV[1])
else
  redis.call('HDEL', KEYS[1], 'unconfirmed_since')
  redis.call('HSET', KEYS[1], 'interfaces', ARGV[1], 'described_at', ARGV[2])
  if ARGV[8] == '' then
    redis.call('HDEL', KEYS[1], 'mutation_pending')
  else
    -- A read that lags does not tell what became of the last mutation either.
    redis.call('HSET', KEYS[1], 'lacking', ARGV[8])
  end
end
redis.call('PEXPIRE', KEYS[1], ARGV[6])
return 1
