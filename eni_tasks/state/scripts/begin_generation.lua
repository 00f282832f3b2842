-- Begin a generation of the state, if none has begun.
--
-- KEYS    1: state generation, 2: its times
-- ARGV    1: id for a new generation, 2: id that the caller knows, or "", 3: for how long EC2 calls of an
--         earlier generation may still be running (ms)
-- Answer  id of the present generation
--
-- Why a script: when several processes notice an empty Redis, one of them begins the generation, and its time
-- is stored with it.
--
-- A caller that knows another generation was running when the data was lost: mutations from before may still
-- be running, and this Redis has no record of them.

local now = now_ms()
local current = redis.call('GET', KEYS[1])
if not current then
  current = ARGV[1]
  redis.call('SET', KEYS[1], current)
  redis.call('HSET', KEYS[2], 'began_at', now)
end
if ARGV[2] ~= '' and ARGV[2] ~= current then
  redis.call('HSET', KEYS[2], 'quiet_until', now + tonumber(ARGV[3]))
end
return current
