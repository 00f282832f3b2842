-- Note which interfaces a pass saw unattached, on behalf of a live claim, and delete all other entries.
--
-- KEYS    1: work hash, 2: orphans
-- ARGV    1: token, 2: lifetime (ms), then the interfaces' ids
-- Answer  per interface for how long passes have seen it (ms), 0 for a new one; nil if the claim has ended
--
-- Why a script: the late list of a collector that lost its claim must not bring back what a later one deleted.

local now = now_ms()
local token, lease = unpack(redis.call('HMGET', KEYS[1], 'token', 'lease'))
if token ~= ARGV[1] or (number(lease) or 0) <= now then
  return false
end

local shown = {}
for i = 3, #ARGV do
  shown[ARGV[i]] = true
end
for _, name in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  if not shown[name] then
    redis.call('ZREM', KEYS[2], name)
  end
end
local ages = {}
for i = 3, #ARGV do
  redis.call('ZADD', KEYS[2], 'NX', now, ARGV[i])
  ages[#ages + 1] = now - tonumber(redis.call('ZSCORE', KEYS[2], ARGV[i]))
end
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return ages
