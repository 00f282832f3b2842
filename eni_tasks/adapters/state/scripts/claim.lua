-- Take a node for the length of a lease.
--
-- KEYS    1: work hash, 2: pending, 3: fence
-- ARGV    1: node name, 2: the claim's token, 3: lease (ms)
-- Answer  {fence, generation seen, 1 if news that ends a wait came before}, or nil while a live claim
--         holds the node
--
-- Why a script: of two workers that hold the same message only one may get the node, and the
-- generation must be read in the same instant. A repeated call (its first answer was lost) finds its
-- own token and gets the same answer again.

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local token, fence, lease, seen, gen, kick, news =
  unpack(redis.call('HMGET', KEYS[1], 'token', 'fence', 'lease', 'seen', 'gen', 'kick', 'news'))

if lease and tonumber(lease) > now then
  if token == ARGV[2] then
    return { tonumber(fence), tonumber(seen), tonumber(news) }
  end
  return false
end

-- Not below the clock (in µs): fences go on growing when Redis was emptied or lost its last writes.
local next_fence = math.max((tonumber(redis.call('GET', KEYS[3])) or 0) + 1, clock[1] * 1000000 + clock[2])
redis.call('SET', KEYS[3], next_fence)
local generation = tonumber(gen) or 0
news = kick and 1 or 0
local ends = now + tonumber(ARGV[3])
redis.call('HDEL', KEYS[1], 'sent', 'sends', 'not_before', 'kick')
redis.call('HSET', KEYS[1], 'token', ARGV[2], 'fence', next_fence, 'lease', ends, 'seen', generation, 'news', news)
redis.call('ZADD', KEYS[2], ends, ARGV[1])
return { next_fence, generation, news }
