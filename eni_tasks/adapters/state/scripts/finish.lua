-- Give a node back.
--
-- KEYS    1: work hash, 2: pending
-- ARGV    1: node name, 2: token, 3: -1 if the run left nothing to do, 0 to go on at once, else the
--         time to wait (ms), 4: time after which a message is overdue (ms)
-- Answer  "done", "send", "waiting" or "stale"
--
-- Why a script: a mark that comes while the run ends must either be seen here or find the node idle.

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local token, gen, seen, kick = unpack(redis.call('HMGET', KEYS[1], 'token', 'gen', 'seen', 'kick'))
if token ~= ARGV[2] then
  return 'stale'
end

local wait = tonumber(ARGV[3])
local news = (tonumber(gen) or 0) > tonumber(seen)
if wait < 0 and not news then
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
  return 'done'
end

redis.call('HDEL', KEYS[1], 'token', 'fence', 'lease', 'seen', 'news')
if wait > 0 and not kick then
  redis.call('HSET', KEYS[1], 'not_before', now + wait)
  redis.call('ZADD', KEYS[2], now + wait, ARGV[1])
  return 'waiting'
end
local deadline = now + tonumber(ARGV[4])
redis.call('HSET', KEYS[1], 'sent', deadline, 'sends', 1)
redis.call('ZADD', KEYS[2], deadline, ARGV[1])
return 'send'
