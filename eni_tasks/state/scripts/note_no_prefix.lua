-- Note that a subnet has no free /28 prefix: no node asks it for one for a while.
--
-- KEYS    1: subnets without a prefix
-- ARGV    1: subnet, 2: the first wait (ms), 3: the longest wait (ms), 4: lifetime of the key (ms)
-- Answer  nothing
--
-- Why a script: nodes that are refused at the same time must not double the wait more than once.
--
-- The wait doubles if the subnet is refused again soon after the last one ended.

local now = now_ms()
local first, longest = tonumber(ARGV[2]), tonumber(ARGV[3])
local ends, wait = string.match(redis.call('HGET', KEYS[1], ARGV[1]) or '', '^(%S+) (%S+)$')
ends, wait = number(ends), number(wait)
if ends and ends > now then
  return
end
if ends and wait and now - ends < wait then
  wait = math.min(longest, wait * 2)
else
  wait = first
end
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f %.0f', now + wait, wait))
redis.call('PEXPIRE', KEYS[1], ARGV[4])
