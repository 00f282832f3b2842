-- End a claim before its lease, because a person says that its holder is dead or stuck.
--
-- KEYS    1: work hash, 2: pending
-- ARGV    1: name of the work
-- Answer  what is left of the lease (ms; not above 0 if it had run out), or nil if there is no claim
--
-- Why a script: a claim that is taken between the check and the end must not be ended by mistake. The work
-- stays pending and is overdue at once, so that it is requeued even if the caller dies.

local now = now_ms()
local lease = redis.call('HGET', KEYS[1], 'lease')
if not lease then
  return false
end
redis.call('HDEL', KEYS[1], 'token', 'fence', 'lease', 'seen_revision', 'woken', 'wake')
redis.call('ZADD', KEYS[2], now, ARGV[1])
return (number(lease) or now) - now
