-- Renew one's own live leases.
--
-- KEYS    per claim: work hash, pending
-- ARGV    1: lease (ms), then for each claim the name of the work and the token
-- Answer  per claim 1, or 0 if it has ended
--
-- Why a script: between the check and the renewal, the lease could end and another worker claim the work.

local now = now_ms()
local answer = {}
for i = 1, #KEYS / 2 do
  local key, name, token = KEYS[2 * i - 1], ARGV[2 * i], ARGV[2 * i + 1]
  local held, lease = unpack(redis.call('HMGET', key, 'token', 'lease'))
  if held == token and (number(lease) or 0) > now then
    -- A permitted mutation may have extended it further than this.
    local ends = math.max(number(lease), now + tonumber(ARGV[1]))
    redis.call('HSET', key, 'lease', ends)
    redis.call('ZADD', KEYS[2 * i], ends, name)
    answer[i] = 1
  else
    answer[i] = 0
  end
end
return answer
