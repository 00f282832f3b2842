-- Store objects, each only if it is newer than the stored one.
--
-- KEYS    1: nodes, 2: versions
-- ARGV    for each object: name, resourceVersion, uid, instance id, instance type, JSON
-- Answer  how many were stored
--
-- Why a script: watchers deliver the same events in any order.
--
-- Versions are compared as decimal strings, the longer one is greater: they outgrow Lua's numbers.

local function newer(a, b)
  if #a ~= #b then
    return #a > #b
  end
  return a > b
end

local stored = 0
for i = 1, #ARGV, 6 do
  local name, version, object = ARGV[i], ARGV[i + 1], ARGV[i + 5]
  local known = redis.call('HGET', KEYS[2], name)
  if not known or newer(version, string.match(known, '^%S*')) then
    redis.call('HSET', KEYS[1], name, object)
    redis.call('HSET', KEYS[2], name, table.concat(ARGV, ' ', i + 1, i + 4))
    stored = stored + 1
  end
end
return stored
