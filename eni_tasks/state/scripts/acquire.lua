-- Permit one mutation, or say why not. Checks in this order: claim, state generation, pause, breaker, the subnet's addresses, token.
--
-- KEYS    1: work hash, 2: pending, 3: switches, 4: breaker, 5: token bucket, 6: ledger, 7: ledger entries,
--         8: journal, 9: times of the state generation, 10: facts (absent if no instance changes)
-- ARGV    1: name of the work, 2: token of the claim, 3: bucket size (0: no limit), 4: refill (per s),
--         5: "1" if urgent, 6: time that the call may take (ms), 7: lifetime of facts (ms), 8: entry for the
--         journal, or ""; if addresses are taken from a subnet also 9: subnet, 10: id of the reservation,
--         11: count, 12: free addresses as described, 13: for how long the taking may last (ms)
-- Answer  {"ok" | "lost" | "wait" | "paused" | "broken" | "taken" | "unconfirmed", milliseconds to wait, why}
--
-- Why a script: a claim that ends, or a pause that begins, between the check and the token would permit a mutation
-- that must not happen. A token is shared by all workers, and many nodes take from one subnet at once. A repeated
-- call (its first answer was lost) finds its own reservation.

local now = now_ms()
local busy = tonumber(ARGV[6])

local token, lease, fence = unpack(redis.call('HMGET', KEYS[1], 'token', 'lease', 'fence'))
if token ~= ARGV[2] or (number(lease) or 0) <= now then
  return { 'lost', 0, '' }
end

if state_is_unconfirmed(KEYS[9]) then
  return { 'unconfirmed', 1000, '' }
end

local pause = redis.call('HGET', KEYS[3], 'pause')
if pause then
  return { 'paused', 30000, pause }
end

local breaks_until, why, probe = unpack(redis.call('HMGET', KEYS[4], 'until', 'why', 'probe'))
if breaks_until then
  -- Open, or probed by another worker: one call at a time finds out whether the trouble is over.
  local free_at = math.max(number(breaks_until) or 0, number(probe) or 0)
  if free_at > now then
    return { 'broken', free_at - now, why }
  end
end

local entry = ARGV[9] and ARGV[9] .. '|' .. ARGV[10] .. '|' .. ARGV[11]
if entry and redis.call('ZSCORE', KEYS[7], entry) then
  entry = nil
end
if entry and tonumber(ARGV[12]) - (number(redis.call('HGET', KEYS[6], ARGV[9])) or 0) < tonumber(ARGV[11]) then
  return { 'taken', 0, '' }
end

local size, refill = tonumber(ARGV[3]), tonumber(ARGV[4]) / 1000
local bucket = read_bucket(KEYS[5], size, refill, now)
-- No call is made in the second after EC2 throttled.
local held_until = (bucket.throttled_at or -1000) + 1000
if held_until > now then
  return { 'wait', held_until - now, 'EC2 throttles' }
end
if size > 0 then
  -- The last twentieth is reserved for urgent nodes: while there are any, the refill is theirs.
  -- A fiftieth is never given out, since calls reach EC2 less evenly than they leave here.
  local missing = 1 + math.floor(size / (ARGV[5] == '1' and 50 or 20)) - bucket.tokens
  if missing > 0 then
    local rate = refill * bucket.share
    local wait = rate > 0 and missing / rate or 3600000
    if ARGV[5] ~= '1' and rate > 0 then
      -- Each caller that waits is promised a later token than the one before, so that they don't all return at
      -- once; never later than a full bucket, or tokens would overflow meanwhile.
      local promised = math.max(number(redis.call('HGET', KEYS[5], 'next_promise')) or 0, now) + 1 / rate
      wait = math.max(wait, math.min(promised - now, size / rate))
      redis.call('HSET', KEYS[5], 'next_promise', string.format('%.0f', now + wait))
    end
    return { 'wait', math.ceil(math.min(wait, 3600000)), '' }
  end
  redis.call('HSET', KEYS[5], 'tokens', bucket.tokens - 1, 'at', now)
  redis.call('EXPIRE', KEYS[5], 3600)
end

if entry then
  add_to_field(KEYS[6], ARGV[9], tonumber(ARGV[11]))
  redis.call('ZADD', KEYS[7], now + tonumber(ARGV[13]), entry)
end
if ARGV[8] ~= '' then
  redis.call('HSET', KEYS[8], ARGV[1], ARGV[8])
end
if breaks_until then
  redis.call('HSET', KEYS[4], 'probe', now + busy)
end
-- The claim outlives the call, even if the thread that renews it stops.
local ends = math.max(number(lease), now + busy)
redis.call('HSET', KEYS[1], 'lease', ends)
redis.call('ZADD', KEYS[2], ends, ARGV[1])
if KEYS[10] then
  local mutated_at = number(redis.call('HGET', KEYS[10], 'mutated_at')) or 0
  redis.call('HSET', KEYS[10], 'mutation_pending', 1, 'fence', fence, 'mutated_at', math.max(mutated_at, now + busy))
  redis.call('PEXPIRE', KEYS[10], ARGV[7])
end
return { 'ok', 0, breaks_until and 'probe' or '' }
