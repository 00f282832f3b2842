-- Take one token for a read, or say how long to wait for one.
--
-- KEYS    1: token bucket
-- ARGV    1: bucket size (0: no limit), 2: refill (per s)
-- Answer  milliseconds to wait; 0 if a token was taken
--
-- Why a script: all workers share the bucket, so two must not take its last token.

local now = now_ms()
local size, refill = tonumber(ARGV[1]), tonumber(ARGV[2]) / 1000
if size == 0 then
  return 0
end
local bucket = read_bucket(KEYS[1], size, refill, now)
-- No call is made in the second after EC2 throttled.
local held_until = (bucket.throttled_at or -1000) + 1000
if held_until > now then
  return held_until - now
end
if bucket.tokens < 1 then
  local rate = refill * bucket.share
  return rate > 0 and math.ceil(math.min((1 - bucket.tokens) / rate, 3600000)) or 3600000
end
redis.call('HSET', KEYS[1], 'tokens', bucket.tokens - 1, 'at', now)
redis.call('EXPIRE', KEYS[1], 3600)
return 0
