-- Take overdue work for sending again: lost messages, claims whose lease has run out, waits that are over.
--
-- KEYS    1: pending
-- ARGV    1: prefix of the work hashes (same hash tag as KEYS[1]), 2: how many at most, 3: time after which a
--         message is overdue (ms)
-- Answer  the names to send, most urgent first
--
-- Why a script: any number of processes may requeue, and each overdue entry must be taken by one of them.
-- The work hashes can't be in KEYS: only the ZSET knows which entries are overdue. The prefix carries the hash
-- tag, so they live where KEYS[1] lives.
--
-- Each further message doubles the time that it is given, up to 16 times: a message that is merely late in a long
-- queue must not be joined by more and more copies.

local now = now_ms()
local limit, overdue = tonumber(ARGV[2]), tonumber(ARGV[3])

-- A bounded look ahead is enough to let urgent work overtake; what is taken makes room for the rest.
local found = {}
for rank, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 4 * limit)) do
  local urgency, lease, sends = unpack(redis.call('HMGET', ARGV[1] .. name, 'urgency', 'lease', 'sends'))
  if (number(lease) or 0) > now then
    redis.call('ZADD', KEYS[1], lease, name)
  else
    found[#found + 1] = { name = name, urgency = number(urgency) or 9, sends = number(sends) or 0, rank = rank }
  end
end
table.sort(found, function(a, b)
  if a.urgency ~= b.urgency then
    return a.urgency < b.urgency
  end
  return a.rank < b.rank
end)

local to_send = {}
for i = 1, math.min(limit, #found) do
  local name, sends = found[i].name, found[i].sends + 1
  local key = ARGV[1] .. name
  local deadline = now + overdue * math.min(16, 2 ^ (sends - 1))
  -- A claim whose lease has run out ends here: its token no longer matches.
  redis.call('HDEL', key, 'token', 'fence', 'lease', 'seen_revision', 'woken', 'not_before')
  redis.call('HSETNX', key, 'unserved_since', now)
  redis.call('HSET', key, 'sent', deadline, 'sends', sends)
  redis.call('ZADD', KEYS[1], deadline, name)
  to_send[i] = name
end
return to_send
