-- Write or strike out one node's entry in a hash, on behalf of a live claim.
--
-- KEYS    1: work hash, 2: memory or journal
-- ARGV    1: node name, 2: token, 3: entry ("" strikes out)
-- Answer  1, or 0 if the claim is no longer ours
--
-- Why a script: a worker that lost its claim must not write over its successor's entry.

local clock = redis.call('TIME')
local token, lease = unpack(redis.call('HMGET', KEYS[1], 'token', 'lease'))
if token ~= ARGV[2] or tonumber(lease) <= clock[1] * 1000 + math.floor(clock[2] / 1000) then
  return 0
end
if ARGV[3] ~= '' then
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
else
  redis.call('HDEL', KEYS[2], ARGV[1])
end
return 1
