-- Record what a mutation did to an instance.
--
-- KEYS    1: facts
-- ARGV    1: the claim's fence, 2: interfaces (JSON), or "" if they are as before, 3: "1" if the answer
--         contradicts the facts: they stay unknown until the next read, 4: lifetime (ms), 5: what was given back lately
--         (JSON), or "" if that is as before
-- Answer  1, or 0 if a later claim was permitted a mutation or recorded one
--
-- Why a script: the fence must be compared and the facts replaced in one step, or the late answer of a worker
-- that lost its claim would overwrite what the next one recorded or has under way.

local fence = number(redis.call('HGET', KEYS[1], 'fence')) or 0
if fence > tonumber(ARGV[1]) then
  return 0
end
add_to_field(KEYS[1], 'version', 1)
redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'mutated_at', now_ms())
if ARGV[3] == '1' then
  redis.call('HSET', KEYS[1], 'mutation_pending', 1)
else
  redis.call('HDEL', KEYS[1], 'mutation_pending')
end
if ARGV[2] ~= '' then
  redis.call('HSET', KEYS[1], 'interfaces', ARGV[2])
  -- What reads lacked before this change proves nothing about what is there after it.
  redis.call('HDEL', KEYS[1], 'unconfirmed_since', 'lacking')
end
if ARGV[5] ~= '' then
  redis.call('HSET', KEYS[1], 'released', ARGV[5])
end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
