-- Read the fill of token buckets as `acquire` would compute it; writes nothing.
--
-- KEYS    one bucket per action
-- ARGV    for each bucket its size (0: no limit) and refill (per s)
-- Answer  for each bucket {tokens, share of the rate in force, when EC2 last throttled (ms) or ""}, as text
--
-- Why a script: the arithmetic stands in one place, beside that of `acquire`.

local now = now_ms()
local answer = {}
for i = 1, #KEYS do
  local bucket = read_bucket(KEYS[i], tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i]) / 1000, now)
  answer[i] = { tostring(bucket.tokens), tostring(bucket.share), bucket.throttled_at and tostring(bucket.throttled_at) or '' }
end
return answer
