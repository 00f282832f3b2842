-- The arithmetic of the token buckets.
--
-- EC2's throttling halves the refill rate. The share of the rate that is in force then grows back steadily, by
-- 5 % of the rate per second, up to 1.

local BUCKET_GROWTH = 0.05 / 1000 -- per ms

local function bucket_share(factor, halved_at, time)
  return math.min(1, factor + BUCKET_GROWTH * math.max(0, time - halved_at))
end

-- The sum of the share since the halving, in ms at the full rate.
local function bucket_area(factor, halved_at, time)
  local age, growing = math.max(0, time - halved_at), (1 - factor) / BUCKET_GROWTH
  return age - growing * (1 - factor) / 2 + (age < growing and BUCKET_GROWTH * (growing - age) ^ 2 / 2 or 0)
end

-- Answer {tokens, share of the rate in force, when EC2 last throttled or nil}; an unknown bucket is full. Times in the
-- future count as unknown: the clock went back, after a failover for example, and waiting for them would take as long.
local function read_bucket(key, size, refill_per_ms, now)
  local tokens, at, factor, halved_at, throttled_at =
    unpack(redis.call('HMGET', key, 'tokens', 'at', 'factor', 'halved_at', 'throttled_at'))
  factor, halved_at = number(factor) or 1, number(halved_at) or 0
  tokens, at, throttled_at = number(tokens), number(at), number(throttled_at)
  at = at and at <= now and at
  local grown = at and bucket_area(factor, halved_at, now) - bucket_area(factor, halved_at, at)
  return {
    tokens = at and tokens and math.min(size, tokens + refill_per_ms * grown) or size,
    share = bucket_share(factor, halved_at, now),
    throttled_at = throttled_at and throttled_at <= now and throttled_at or nil,
  }
end
