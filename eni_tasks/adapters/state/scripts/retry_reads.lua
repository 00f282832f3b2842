-- Note reads that could not be entered, to be made again after a time that doubles.
--
-- KEYS    1: reads, 2…: facts, one per node
-- ARGV    1: first delay (ms), 2: longest (ms), 3: lifetime of facts (ms), then the nodes' names
-- Answer  nothing
--
-- Why a script: the delay follows from how often it was tried, and the time is Redis' own. A delay beyond the
-- longest is not noted at all: the periodic read comes sooner.

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
for i = 2, #KEYS do
  local tries = redis.call('HINCRBY', KEYS[i], 'tries', 1)
  redis.call('PEXPIRE', KEYS[i], ARGV[3])
  local delay = tonumber(ARGV[1]) * 2 ^ math.min(tries - 1, 20)
  if delay <= tonumber(ARGV[2]) then
    redis.call('ZADD', KEYS[1], now + delay, ARGV[i + 2])
  end
end
