-- Delete a journal entry that no worker can decode, on behalf of a person who has read it.
--
-- KEYS    1: work hash (maintain), 2: journal
-- ARGV    1: node name, 2: the entry that the person was shown
-- Answer  "done", "changed" or "held"
--
-- Why a script: a worker may write the next step, or begin another interface, between the person's look and the
-- deletion. Its entry must stay.

local lease = redis.call('HGET', KEYS[1], 'lease')
if (number(lease) or 0) > now_ms() then
  return 'held'
end
if redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then
  return 'changed'
end
redis.call('HDEL', KEYS[2], ARGV[1])
return 'done'
