-- Replace the infrastructure by a later description, and release what the ledger held until then.
--
-- KEYS    1: infrastructure, 2: ledger, 3: ledger entries
-- ARGV    1: JSON, 2: when the description began (ms), 3: settle time of EC2's reads (ms)
-- Answer  1, or 0 if the stored one is as late
--
-- Why a script: free counts and the ledger must change in one step, or addresses would for a moment count twice
-- or not at all.
--
-- An entry's score says when its addresses were certainly taken: a description that began later than that, plus
-- the settle time, has them in its free counts.

local known = number(redis.call('HGET', KEYS[1], 'described_at'))
if known and known >= tonumber(ARGV[2]) then
  return 0
end
redis.call('HSET', KEYS[1], 'json', ARGV[1], 'described_at', ARGV[2])
local settled = string.format('(%.0f', tonumber(ARGV[2]) - tonumber(ARGV[3]))
for _, entry in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', settled)) do
  local subnet, count = string.match(entry, '^(.*)|.*|(%d+)$')
  if subnet and add_to_field(KEYS[2], subnet, -tonumber(count)) <= 0 then
    redis.call('HDEL', KEYS[2], subnet)
  end
end
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', settled)
return 1
