-- Request reads again that could not be accepted, after a delay that doubles.
--
-- KEYS    1: reads, 2…: facts, one per node
-- ARGV    1: first delay (ms), 2: longest (ms), 3: lifetime of facts (ms), then the nodes' names
-- Answer  nothing
--
-- Why a script: the delay follows from the number of tries, and the time is Redis' own. A read that would come
-- later than the longest delay is not requested: the periodic read comes sooner.

local now = now_ms()
for i = 2, #KEYS do
  local tries = add_to_field(KEYS[i], 'tries', 1)
  redis.call('PEXPIRE', KEYS[i], ARGV[3])
  local delay = tonumber(ARGV[1]) * 2 ^ math.min(tries - 1, 20)
  if delay <= tonumber(ARGV[2]) then
    redis.call('ZADD', KEYS[1], now + delay, ARGV[i + 2])
  end
end
