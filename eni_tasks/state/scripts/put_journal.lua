-- Write or delete a node's journal entry, on behalf of a live claim.
--
-- KEYS    1: work hash, 2: journal
-- ARGV    1: node name, 2: token, 3: entry ("" deletes it)
-- Answer  1, or 0 if the claim has ended
--
-- Why a script: a worker that lost its claim must not overwrite the entry of the next one.

local token, lease = unpack(redis.call('HMGET', KEYS[1], 'token', 'lease'))
if token ~= ARGV[2] or (number(lease) or 0) <= now_ms() then
  return 0
end
if ARGV[3] ~= '' then
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
else
  redis.call('HDEL', KEYS[2], ARGV[1])
end
return 1
