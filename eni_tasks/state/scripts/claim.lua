-- Claim a piece of work for the length of a lease.
--
-- KEYS    1: work hash, 2: pending, 3: fence, 4: times of the state generation
-- ARGV    1: name of the work, 2: the claim's token, 3: lease (ms)
-- Answer  {fence, revision seen, 1 if the work was woken before}, nil while a live claim holds the work; the error
--         UNCONFIRMED while the state is (state/refusing.py)
--
-- Why a script: of two workers that received the same message only one may hold the work, and the revision
-- must be read at the same instant. A repeated call (its first answer was lost) finds its own token and gets
-- the same answer.

if state_is_unconfirmed(KEYS[4]) then
  return redis.error_reply('UNCONFIRMED Redis was restarted or failed over, and no watcher has confirmed its data yet')
end
local now = now_ms()
local token, fence, lease, seen, revision, wake, woken =
  unpack(redis.call('HMGET', KEYS[1], 'token', 'fence', 'lease', 'seen_revision', 'revision', 'wake', 'woken'))

if (number(lease) or 0) > now then
  if token == ARGV[2] then
    return { number(fence) or 0, number(seen) or 0, number(woken) or 0 }
  end
  return false
end

-- Not below the clock (in µs): fences keep growing when Redis was emptied or lost its last writes.
local next_fence = math.max((number(redis.call('GET', KEYS[3])) or 0) + 1, now_us())
redis.call('SET', KEYS[3], next_fence)
revision = number(revision) or 0
woken = wake and 1 or 0
local ends = now + tonumber(ARGV[3])
redis.call('HDEL', KEYS[1], 'sent', 'sends', 'not_before', 'wake', 'unserved_since')
redis.call('HSET', KEYS[1], 'token', ARGV[2], 'fence', next_fence, 'lease', ends, 'seen_revision', revision, 'woken', woken)
redis.call('ZADD', KEYS[2], ends, ARGV[1])
return { next_fence, revision, woken }
