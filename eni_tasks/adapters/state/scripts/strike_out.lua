-- Strike out a journal entry that no worker can read, because a person has read it and said so.
--
-- KEYS    1: work hash (maintain), 2: journal
-- ARGV    1: node name, 2: the entry that the person was shown
-- Answer  "done", "changed" or "held"
--
-- Why a script: a worker may write the next step, or begin another interface, between the person's
-- look and the deletion; its entry must stay.

local clock = redis.call('TIME')
local lease = redis.call('HGET', KEYS[1], 'lease')
if lease and tonumber(lease) > clock[1] * 1000 + math.floor(clock[2] / 1000) then
  return 'held'
end
if redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then
  return 'changed'
end
redis.call('HDEL', KEYS[2], ARGV[1])
return 'done'
