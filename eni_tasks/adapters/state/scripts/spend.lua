-- Let one mutation through, or say why not: fence, pause, breakers, budget, the subnet's addresses, in this order.
--
-- KEYS    1: work hash, 2: pending, 3: switches, 4: breaker, 5: budget, 6: ledger, 7: ledger entries,
--         8: journal, 9: breaker of reads, 10: facts (absent if no instance changes)
-- ARGV    1: node name, 2: token, 3: bucket size (0: no budget), 4: refill (per s), 5: "1" if urgent,
--         6: time that the call may take (ms), 7: lifetime of facts (ms), 8: entry for the journal, or "";
--         if addresses are drawn from a subnet also 9: subnet, 10: id of the reservation, 11: count, 12: free
--         addresses as described, 13: for how long the taking may go on (ms)
-- Answer  {"ok" | "lost" | "wait" | "paused" | "broken" | "taken", milliseconds to wait, why}
--
-- Why a script: a claim that ends, or a pause that begins, between the check and the token would let
-- a mutation through that must not be; a token is shared by all workers, and many nodes draw from one
-- subnet at once. A repeated call (its first answer was lost) finds its own reservation.

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local busy = tonumber(ARGV[6])

local token, lease, fence = unpack(redis.call('HMGET', KEYS[1], 'token', 'lease', 'fence'))
if token ~= ARGV[2] or tonumber(lease) <= now then
  return { 'lost', 0, '' }
end

local pause = redis.call('HGET', KEYS[3], 'pause')
if pause then
  return { 'paused', 30000, pause }
end

-- Facts that can't be checked any more are no ground to change anything on.
local unread_until, unread = unpack(redis.call('HMGET', KEYS[9], 'until', 'why'))
if unread_until and tonumber(unread_until) > now then
  -- A good read may come any moment: nobody waits for longer than reads do.
  return { 'broken', math.min(tonumber(unread_until) - now, 10000), unread }
end

local breaks_until, why, probe = unpack(redis.call('HMGET', KEYS[4], 'until', 'why', 'probe'))
if breaks_until then
  -- Open, or due and probed by somebody else: one call at a time finds out whether the trouble is over.
  local free_at = math.max(tonumber(breaks_until), tonumber(probe) or 0)
  if free_at > now then
    return { 'broken', free_at - now, why }
  end
end

local entry = ARGV[9] and ARGV[9] .. '|' .. ARGV[10] .. '|' .. ARGV[11]
if entry and redis.call('ZSCORE', KEYS[7], entry) then
  entry = nil
end
if entry and tonumber(ARGV[12]) - (tonumber(redis.call('HGET', KEYS[6], ARGV[9])) or 0) < tonumber(ARGV[11]) then
  return { 'taken', 0, '' }
end

local size, refill = tonumber(ARGV[3]), tonumber(ARGV[4]) / 1000
local tokens, at, factor, halved_at, throttled_at =
  unpack(redis.call('HMGET', KEYS[5], 'tokens', 'at', 'factor', 'halved_at', 'throttled_at'))
-- Nobody asks again in the very second in which EC2 said "too many".
local held_until = throttled_at and tonumber(throttled_at) + 1000 or 0
if held_until > now then
  return { 'wait', held_until - now, 'EC2 throttles' }
end
if size > 0 then
  factor, halved_at, at = tonumber(factor) or 1, tonumber(halved_at) or 0, tonumber(at)
  local growth = 0.05 / 1000
  -- The share of the rate at a time, and its sum since the halving: it grows back steadily, up to 1.
  local function share(time)
    return math.min(1, factor + growth * math.max(0, time - halved_at))
  end
  local function sum(time)
    local age, growing = math.max(0, time - halved_at), (1 - factor) / growth
    return age - growing * (1 - factor) / 2 + (age < growing and growth * (growing - age) ^ 2 / 2 or 0)
  end
  tokens = at and math.min(size, tonumber(tokens) + refill * (sum(now) - sum(at))) or size
  -- The last twentieth is for nodes that are urgent: what flows in is then theirs as long as there are any.
  -- A fiftieth is for nobody, since calls reach EC2 less evenly than they leave here.
  local missing = 1 + math.floor(size / (ARGV[5] == '1' and 50 or 20)) - tokens
  if missing > 0 then
    local rate = refill * share(now)
    local wait = rate > 0 and missing / rate or 3600000
    if ARGV[5] ~= '1' and rate > 0 then
      -- Each who waits is promised a later token than the one before, so that they don't all come back at
      -- once; never later than a full bucket, or tokens would flow over meanwhile.
      local promised = math.max(tonumber(redis.call('HGET', KEYS[5], 'promised')) or 0, now) + 1 / rate
      wait = math.max(wait, math.min(promised - now, size / rate))
      redis.call('HSET', KEYS[5], 'promised', string.format('%.0f', now + wait))
    end
    return { 'wait', math.ceil(math.min(wait, 3600000)), '' }
  end
  redis.call('HSET', KEYS[5], 'tokens', tokens - 1, 'at', now)
  redis.call('EXPIRE', KEYS[5], 3600)
end

if entry then
  redis.call('HINCRBY', KEYS[6], ARGV[9], ARGV[11])
  redis.call('ZADD', KEYS[7], now + tonumber(ARGV[13]), entry)
end
if ARGV[8] ~= '' then
  redis.call('HSET', KEYS[8], ARGV[1], ARGV[8])
end
if breaks_until then
  redis.call('HSET', KEYS[4], 'probe', now + busy)
end
-- The claim outlives the call, whatever happens to the thread that renews it.
local ends = math.max(tonumber(lease), now + busy)
redis.call('HSET', KEYS[1], 'lease', ends)
redis.call('ZADD', KEYS[2], ends, ARGV[1])
if KEYS[10] then
  local mutated_at = tonumber(redis.call('HGET', KEYS[10], 'mutated_at')) or 0
  redis.call('HSET', KEYS[10], 'in_air', 1, 'fence', fence, 'mutated_at', math.max(mutated_at, now + busy))
  redis.call('PEXPIRE', KEYS[10], ARGV[7])
end
return { 'ok', 0, breaks_until and 'probe' or '' }
