-- End a run and its claim.
--
-- KEYS    1: work hash, 2: pending
-- ARGV    1: name of the work, 2: token, 3: -1 if the run left nothing to do, 0 to continue at once, else the
--         time to wait (ms), 4: time after which a message is overdue (ms)
-- Answer  "done", "send", "waiting" or "stale"
--
-- Why a script: work that is enqueued while the run ends must either be seen here or find the work idle.

local now = now_ms()
local token, revision, seen, wake = unpack(redis.call('HMGET', KEYS[1], 'token', 'revision', 'seen_revision', 'wake'))
if token ~= ARGV[2] then
  return 'stale'
end

local wait = tonumber(ARGV[3])
local grown = (tonumber(revision) or 0) > tonumber(seen)
if wait < 0 and not grown then
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
  return 'done'
end

redis.call('HDEL', KEYS[1], 'token', 'fence', 'lease', 'seen_revision', 'woken')
if wait > 0 and not wake then
  redis.call('HSET', KEYS[1], 'not_before', now + wait)
  redis.call('ZADD', KEYS[2], now + wait, ARGV[1])
  return 'waiting'
end
local deadline = now + tonumber(ARGV[4])
redis.call('HSET', KEYS[1], 'sent', deadline, 'sends', 1)
redis.call('ZADD', KEYS[2], deadline, ARGV[1])
return 'send'
