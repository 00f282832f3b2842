-- Halve the rate of an action for all workers and empty its bucket, because EC2 throttled it.
--
-- KEYS    1: token bucket
-- Answer  nothing
--
-- Why a script: calls that run at the same time are throttled together. Only the first of a second may halve the
-- rate; the others would push it down to nothing.

local now = now_ms()
local factor, halved_at = unpack(redis.call('HMGET', KEYS[1], 'factor', 'halved_at'))
factor, halved_at = number(factor) or 1, number(halved_at) or 0
if now - halved_at >= 1000 then
  redis.call('HSET', KEYS[1], 'factor', bucket_share(factor, halved_at, now) / 2, 'halved_at', now)
end
redis.call('HSET', KEYS[1], 'tokens', 0, 'at', now, 'throttled_at', now)
redis.call('EXPIRE', KEYS[1], 3600)
