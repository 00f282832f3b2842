-- Confirm the state generation, or begin another if none has begun or if the state went back in time.
--
-- KEYS    1: state generation, 2: its times, 3: orphans, 4: removed instances
-- ARGV    1: id for a new generation, 2: for how long EC2 calls of an earlier generation may still be running (ms),
--         3: the server's run id, or ""; what the caller saw last: 4: id, or "", 5: beat, 6: Redis' time then (ms)
-- Answer  {id, beat, time (ms)}
--
-- Why a script: when several processes notice at once, one of them begins the generation, and its time is stored
-- with it.
--
-- The state went back if it belongs to another run of the server than the one that was confirmed last, if it counts
-- fewer beats than the caller has seen, or if its generation began before the caller saw a later one. What it
-- says is then as doubtful as after a loss: nothing is deleted, but facts count as unknown until they are read again.

local now = now_ms()
local current = redis.call('GET', KEYS[1])
local began_at, beat, run_id = unpack(redis.call('HMGET', KEYS[2], 'began_at', 'beat', 'run_id'))
local known = ARGV[4]

local went_back = false
if current then
  if not number(began_at) then
    went_back = true
  elseif ARGV[3] ~= '' and run_id and run_id ~= '' and run_id ~= ARGV[3] then
    went_back = true
  elseif current == known then
    went_back = (number(beat) or 0) < tonumber(ARGV[5])
  elseif known ~= '' then
    went_back = number(began_at) < tonumber(ARGV[6])
  end
end

if not current or went_back then
  current = ARGV[1]
  redis.call('SET', KEYS[1], current)
  redis.call('HSET', KEYS[2], 'began_at', now, 'beat', 0)
  -- What passes of the collector saw before proves nothing any more: their waits start again.
  redis.call('DEL', KEYS[3], KEYS[4])
end
if went_back or (known ~= '' and known ~= current) then
  -- Mutations from before may still be running, and this Redis has no record of them.
  redis.call('HSET', KEYS[2], 'quiet_until', now + tonumber(ARGV[2]))
end
redis.call('HSET', KEYS[2], 'run_id', ARGV[3])
return { current, add_to_field(KEYS[2], 'beat', 1), now }
