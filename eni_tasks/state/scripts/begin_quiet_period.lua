-- Begin a quiet period: no read is accepted until EC2 calls of an earlier generation have ended.
--
-- KEYS    1: times of the state generation
-- ARGV    1: for how long such calls may still be running (ms)
-- Answer  nothing
--
-- Why a script: the period counts from the beginning of the generation, and a repeated call changes nothing.

local began_at, quiet_until = unpack(redis.call('HMGET', KEYS[1], 'began_at', 'quiet_until'))
if number(began_at) then
  redis.call('HSET', KEYS[1], 'quiet_until', math.max(number(quiet_until) or 0, number(began_at) + tonumber(ARGV[1])))
end
