-- A number that Redis holds; nil if the value is absent or no number. The same as in state/decoding.py.
local function number(value)
  local found = value and string.match(value, '^%-?%d[%d%.e%+%-]*$') and tonumber(value)
  return found and math.abs(found) < 2 ^ 63 and found or nil
end

-- HINCRBY for a field that may hold anything: what is no number counts as 0. Answers the sum.
local function add_to_field(key, field, amount)
  local sum = (number(redis.call('HGET', key, field)) or 0) + amount
  redis.call('HSET', key, field, sum)
  return sum
end
