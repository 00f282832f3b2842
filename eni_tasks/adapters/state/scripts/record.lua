-- Enter what a mutation answered, or that EC2 refused it.
--
-- KEYS    1: facts
-- ARGV    1: the claim's fence, 2: interfaces (JSON), or "" if they are as before, 3: "1" if the answer
--         contradicts what we know: the facts stay unknown until the next read, 4: lifetime (ms)
-- Answer  1, or 0 if a later claim spent or wrote already
--
-- Why a script: the fence must be compared and the facts replaced in one step, or the late answer of
-- a worker that was thought dead would overwrite what its successor learned or has in the air.

local fence = tonumber(redis.call('HGET', KEYS[1], 'fence')) or 0
if fence > tonumber(ARGV[1]) then
  return 0
end
local clock = redis.call('TIME')
redis.call('HINCRBY', KEYS[1], 'version', 1)
redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'mutated_at', clock[1] * 1000 + math.floor(clock[2] / 1000))
if ARGV[3] == '1' then
  redis.call('HSET', KEYS[1], 'in_air', 1)
else
  redis.call('HDEL', KEYS[1], 'in_air')
end
if ARGV[2] ~= '' then
  redis.call('HSET', KEYS[1], 'interfaces', ARGV[2])
  redis.call('HDEL', KEYS[1], 'doubted_at')
end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
