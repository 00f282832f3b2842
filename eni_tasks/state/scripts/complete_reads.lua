-- Delete read requests that were taken, unless the read was requested again meanwhile.
--
-- KEYS    1: reads
-- ARGV    name, ticket, name, ticket, …
-- Answer  nothing
--
-- Why a script: a request that comes between the comparison and the removal would be lost.

for i = 1, #ARGV, 2 do
  if redis.call('ZSCORE', KEYS[1], ARGV[i]) == ARGV[i + 1] then
    redis.call('ZREM', KEYS[1], ARGV[i])
  end
end
