-- Replace the counts of pods that wait on nodes.
--
-- KEYS    1: pending pods
-- ARGV    1: lifetime (ms), then for each node on which pods wait its name and their number
-- Answer  nothing
--
-- Why a script: the old counts must not be missing for a moment, nor stay without a lifetime.

redis.call('DEL', KEYS[1])
for i = 2, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
