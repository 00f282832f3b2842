-- EC2 said "too many": halve the rate of the action for everybody, and empty the bucket.
--
-- KEYS    1: budget
-- Answer  nothing
--
-- Why a script: calls that were in flight together are refused together; only the first of a second
-- may halve, the others would push the rate down to nothing.

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local factor, halved_at = unpack(redis.call('HMGET', KEYS[1], 'factor', 'halved_at'))
factor, halved_at = tonumber(factor) or 1, tonumber(halved_at) or 0
if now - halved_at >= 1000 then
  local grown = math.min(1, factor + 0.05 * (now - halved_at) / 1000)
  redis.call('HSET', KEYS[1], 'factor', grown / 2, 'halved_at', now)
end
redis.call('HSET', KEYS[1], 'tokens', 0, 'at', now, 'throttled_at', now)
redis.call('EXPIRE', KEYS[1], 3600)
