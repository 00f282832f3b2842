-- Replace a reservation by what was really taken.
--
-- KEYS    1: ledger, 2: ledger entries
-- ARGV    1: subnet, 2: id, 3: count that the reservation holds, 4: count that was taken
-- Answer  nothing
--
-- Why a script: the sum and the entries must stay in step.
--
-- A reservation that a description has released meanwhile counts as 0. A repeated call changes nothing.

local entry = ARGV[1] .. '|' .. ARGV[2] .. '|'
local taken = tonumber(ARGV[4])
local held = redis.call('ZREM', KEYS[2], entry .. ARGV[3]) == 1 and tonumber(ARGV[3]) or 0
if held == 0 and redis.call('ZSCORE', KEYS[2], entry .. ARGV[4]) then
  return
end
if add_to_field(KEYS[1], ARGV[1], taken - held) <= 0 then
  redis.call('HDEL', KEYS[1], ARGV[1])
end
if taken > 0 then
  redis.call('ZADD', KEYS[2], now_ms(), entry .. ARGV[4])
end
