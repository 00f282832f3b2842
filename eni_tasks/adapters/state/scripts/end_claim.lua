-- End a claim before its time, because a person says that its holder is dead or stuck.
--
-- KEYS    1: work hash, 2: pending
-- ARGV    1: node name
-- Answer  what is left of the lease (ms, not above 0 if it had run out), or nil if there is no claim
--
-- Why a script: a claim that is taken between the look and the end must not be ended by mistake. The
-- node stays pending and is overdue at once, so that a sweep finds it whatever becomes of the caller.

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local lease = redis.call('HGET', KEYS[1], 'lease')
if not lease then
  return false
end
redis.call('HDEL', KEYS[1], 'token', 'fence', 'lease', 'seen', 'news', 'kick')
redis.call('ZADD', KEYS[2], now, ARGV[1])
return tonumber(lease) - now
