-- Take requested reads that are due, each for one reader.
--
-- KEYS    1: reads
-- ARGV    1: how many at most, 2: lease (ms)
-- Answer  name, ticket, name, ticket, …; the ticket is the end of the lease
--
-- Why a script: two readers must not take the same node. If the reader dies, the lease ends and the node is due
-- again. If the read is requested again meanwhile, the ticket no longer matches and the request stays.

local now = now_ms()
local ticket = string.format('%.0f', now + tonumber(ARGV[2]))
local answer = {}
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])) do
  redis.call('ZADD', KEYS[1], ticket, name)
  answer[#answer + 1] = name
  answer[#answer + 1] = ticket
end
return answer
