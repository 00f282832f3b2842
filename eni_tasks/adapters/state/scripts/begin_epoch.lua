-- Mark this Redis' content, if it has no mark yet.
--
-- KEYS    1: epoch, 2: epoch's times
-- ARGV    1: a new mark, 2: the mark that the caller knows, or "", 3: for how long calls of before may go on (ms)
-- Answer  the mark that stands
--
-- Why a script: of all who notice an empty Redis one begins the epoch, and its time is that of the mark.
--
-- Whoever knows another mark has lived through the loss: mutations of before may be under way, and nothing
-- here tells of them any more.

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local stands = redis.call('GET', KEYS[1])
if not stands then
  stands = ARGV[1]
  redis.call('SET', KEYS[1], stands)
  redis.call('HSET', KEYS[2], 'began_at', now)
end
if ARGV[2] ~= '' and ARGV[2] ~= stands then
  redis.call('HSET', KEYS[2], 'quiet_until', now + tonumber(ARGV[3]))
end
return stands
