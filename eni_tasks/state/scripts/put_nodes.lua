-- Store objects, each only if it is newer than the stored one, and note which instance each of them names.
--
-- KEYS    1: nodes, 2: versions
-- ARGV    1: prefix of the sets of claimants (same hash tag as KEYS), 2: "1" to store older objects, too, then for
--         each object: name, resourceVersion, uid, instance id, instance type, creation time (ms), JSON
-- Answer  how many were stored
--
-- Why a script: watchers deliver the same events in any order. Which instance a node named before stands in the
-- stored version, so the sets of claimants can't be in KEYS; they live where the nodes live.
--
-- Versions are compared as decimal strings, the longer one is greater: they outgrow Lua's numbers.

local function newer(a, b)
  if #a ~= #b then
    return #a > #b
  end
  return a > b
end

local stored = 0
for i = 3, #ARGV, 7 do
  local name, version, instance, created, object = ARGV[i], ARGV[i + 1], ARGV[i + 3], ARGV[i + 5], ARGV[i + 6]
  local known = redis.call('HGET', KEYS[2], name)
  if not known or ARGV[2] == '1' or newer(version, string.match(known, '^%S*')) then
    local before = known and string.match(known, '^%S* %S* (%S*)') or ''
    if before ~= '' and before ~= instance then
      redis.call('ZREM', ARGV[1] .. before, name)
    end
    if instance ~= '' then
      -- A new object claims its instance since its creation, a changed one since now: whatever its age, it takes no
      -- instance from a node that has it. Creation times are whole seconds: of objects of the same second the one
      -- that was stored first comes first.
      local since = known and math.max(tonumber(created), now_ms()) or tonumber(created)
      local others = redis.call('ZCOUNT', ARGV[1] .. instance, since, since + 999)
      if not redis.call('ZSCORE', ARGV[1] .. instance, name) then
        redis.call('ZADD', ARGV[1] .. instance, since + math.min(others, 999), name)
      end
    end
    redis.call('HSET', KEYS[1], name, object)
    redis.call('HSET', KEYS[2], name, table.concat(ARGV, ' ', i + 1, i + 4))
    stored = stored + 1
  end
end
return stored
