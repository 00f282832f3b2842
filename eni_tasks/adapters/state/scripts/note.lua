-- Note nodes: whose instance is to be read, and which lack addresses or no longer do.
--
-- KEYS    1: reads, 2: needy
-- ARGV    words: "read", "needy" or "served", then the node's name, and so on
-- Answer  nothing
--
-- Why a script: both are scored by Redis' own time. Since when a node is needy stays as it was first noted.

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
for i = 1, #ARGV, 2 do
  if ARGV[i] == 'read' then
    redis.call('ZADD', KEYS[1], now, ARGV[i + 1])
  elseif ARGV[i] == 'needy' then
    redis.call('ZADD', KEYS[2], 'NX', now, ARGV[i + 1])
  else
    redis.call('ZREM', KEYS[2], ARGV[i + 1])
  end
end
