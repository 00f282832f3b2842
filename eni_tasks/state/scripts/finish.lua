-- End a run and its claim, with what the run learned.
--
-- KEYS    1: work hash, 2: pending; for work on a node also 3: nodes, 4: memory, 5: deficits,
--         6: publish failures
-- ARGV    1: name of the work, 2: token, 3: -1 if the run left nothing to do, 0 to continue at once, else the
--         time to wait (ms), 4: time after which a message is overdue (ms); for work on a node also 5: what the
--         run learned, or "", 6: "1" if the node lacks addresses, "0" if not, "" if that isn't known, 7: why its
--         object could not be written, "" if it could, or nothing if the run did not try
-- Answer  "done", "send", "waiting" or "stale"
--
-- Why a script: work that is enqueued while the run ends must either be seen here or find the work idle, and
-- the late end of a run must write nothing of a node that was removed meanwhile, or that another run holds.

local now = now_ms()
local token, revision, seen, wake = unpack(redis.call('HMGET', KEYS[1], 'token', 'revision', 'seen_revision', 'wake'))
if token ~= ARGV[2] then
  return 'stale'
end

if KEYS[3] then
  if redis.call('HEXISTS', KEYS[3], ARGV[1]) == 0 then
    redis.call('DEL', KEYS[1])
    redis.call('ZREM', KEYS[2], ARGV[1])
    redis.call('HDEL', KEYS[4], ARGV[1])
    redis.call('ZREM', KEYS[5], ARGV[1])
    redis.call('HDEL', KEYS[6], ARGV[1])
    return 'done'
  end
  if ARGV[5] ~= '' then
    redis.call('HSET', KEYS[4], ARGV[1], ARGV[5])
  end
  if ARGV[6] == '1' then
    -- The beginning of a deficit stays as it was first noted.
    redis.call('ZADD', KEYS[5], 'NX', now, ARGV[1])
  elseif ARGV[6] == '0' then
    redis.call('ZREM', KEYS[5], ARGV[1])
  end
  if ARGV[7] == '' then
    redis.call('HDEL', KEYS[6], ARGV[1])
  elseif ARGV[7] then
    redis.call('HSET', KEYS[6], ARGV[1], ARGV[7])
  end
end

local wait = tonumber(ARGV[3])
local grown = (number(revision) or 0) > (number(seen) or 0)
if wait < 0 and not grown then
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
  return 'done'
end

redis.call('HDEL', KEYS[1], 'token', 'fence', 'lease', 'seen_revision', 'woken')
if wait > 0 and not wake then
  redis.call('HSET', KEYS[1], 'not_before', now + wait, 'unserved_since', now + wait)
  redis.call('ZADD', KEYS[2], now + wait, ARGV[1])
  return 'waiting'
end
local deadline = now + tonumber(ARGV[4])
redis.call('HSETNX', KEYS[1], 'unserved_since', now)
redis.call('HSET', KEYS[1], 'sent', deadline, 'sends', 1)
redis.call('ZADD', KEYS[2], deadline, ARGV[1])
return 'send'
