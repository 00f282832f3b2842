-- Enqueue work, and decide for which of it a message must be sent.
--
-- KEYS    1: pending, 2: nodes, 3…: one work hash per name
-- ARGV    1: time after which a message is overdue (ms), 2: delay (ms), 3: "1" if this ends a wait, 4: "1" if the
--         names must be those of stored nodes, then for each piece of work its name and its urgency (0 is the most
--         urgent)
-- Answer  the names to send
--
-- Why a script: two callers at once must not both send, and work must not be enqueued between a run's last
-- look at the revision and its end. No work is enqueued for a node that was removed meanwhile.

local now = now_ms()
local overdue, delay, ends_wait = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1'

local function ahead(time)
  return (number(time) or 0) > now
end

local to_send = {}
local function enqueue(key, name, urgency)
  add_to_field(key, 'revision', 1)
  local known, lease, sent, not_before, sends, unserved_since =
    unpack(redis.call('HMGET', key, 'urgency', 'lease', 'sent', 'not_before', 'sends', 'unserved_since'))
  if not number(known) or urgency < number(known) then
    redis.call('HSET', key, 'urgency', urgency)
  end
  if ends_wait then
    redis.call('HSET', key, 'wake', 1)
  end
  if not unserved_since or (ends_wait and ahead(unserved_since)) then
    redis.call('HSET', key, 'unserved_since', now + delay)
  end
  if ahead(lease) then
    -- The holder's finish sees the new revision; `wake` ends even a wait that it asks for.
  elseif ahead(sent) or (ahead(not_before) and not ends_wait) then
    -- Merged: the message on its way, or the run after the wait, sees this revision.
  else
    -- Idle, overdue, or held by a claim whose lease has run out. That claim ends here: its token no longer matches.
    redis.call('HDEL', key, 'token', 'fence', 'lease', 'seen_revision', 'woken', 'sent', 'not_before')
    if delay > 0 then
      redis.call('HSET', key, 'not_before', now + delay)
      redis.call('ZADD', KEYS[1], now + delay, name)
    else
      local count = (number(sends) or 0) + 1
      local deadline = now + overdue * math.min(16, 2 ^ (count - 1))
      redis.call('HSET', key, 'sent', deadline, 'sends', count)
      redis.call('ZADD', KEYS[1], deadline, name)
      to_send[#to_send + 1] = name
    end
  end
end

for i = 3, #KEYS do
  local name = ARGV[2 * i - 1]
  if ARGV[4] ~= '1' or redis.call('HEXISTS', KEYS[2], name) == 1 then
    enqueue(KEYS[i], name, tonumber(ARGV[2 * i]))
  end
end
return to_send
