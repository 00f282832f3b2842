-- This epoch has predecessors: let what they began end before any read is believed.
--
-- KEYS    1: epoch's times
-- ARGV    1: for how long calls of before may go on (ms)
-- Answer  nothing
--
-- Why a script: counted from the beginning of the epoch, whenever and by whomever it is noticed.

local began_at, quiet_until = unpack(redis.call('HMGET', KEYS[1], 'began_at', 'quiet_until'))
if began_at then
  redis.call('HSET', KEYS[1], 'quiet_until', math.max(tonumber(quiet_until) or 0, tonumber(began_at) + tonumber(ARGV[1])))
end
