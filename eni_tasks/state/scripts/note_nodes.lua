-- Request reads of nodes' instances, and note which nodes lack addresses.
--
-- KEYS    1: reads, 2: deficits
-- ARGV    words: "read" or "deficit", then the node's name, and so on
-- Answer  nothing
--
-- Why a script: all are scored by Redis' own time. The beginning of a deficit stays as it was first noted.

local now = now_ms()
for i = 1, #ARGV, 2 do
  if ARGV[i] == 'read' then
    redis.call('ZADD', KEYS[1], now, ARGV[i + 1])
  else
    redis.call('ZADD', KEYS[2], 'NX', now, ARGV[i + 1])
  end
end
