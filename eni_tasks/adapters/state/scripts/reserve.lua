-- Reserve addresses of a subnet.
--
-- KEYS    1: ledger, 2: ledger entries
-- ARGV    1: subnet, 2: id, 3: count, 4: free addresses as described, 5: for how long the taking may
--         go on (ms)
-- Answer  1, or 0 if too few are left
--
-- Why a script: many nodes choose at once, and the sum must not be overdrawn. A repeated call (its
-- first answer was lost) finds its own entry.

local entry = ARGV[1] .. '|' .. ARGV[2] .. '|' .. ARGV[3]
if redis.call('ZSCORE', KEYS[2], entry) then
  return 1
end
local held = tonumber(redis.call('HGET', KEYS[1], ARGV[1])) or 0
if tonumber(ARGV[4]) - held < tonumber(ARGV[3]) then
  return 0
end
local clock = redis.call('TIME')
redis.call('HINCRBY', KEYS[1], ARGV[1], ARGV[3])
redis.call('ZADD', KEYS[2], clock[1] * 1000 + math.floor(clock[2] / 1000) + tonumber(ARGV[5]), entry)
return 1
