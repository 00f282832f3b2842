-- Store objects, each only if it is newer than the stored one, and note which instance each of them names.
--
-- KEYS    1: nodes, 2: versions
-- ARGV    1: prefix of the sets of claimants (same hash tag as KEYS), 2: "1" to store older objects, too, then for
--         each object: name, resourceVersion, uid, instance id, instance type, creation time (ms), "1" if
--         it shows addresses, JSON
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

-- Note that a node names an instance. The first claimant owns the instance, and no object takes it from a node that has
-- it: a claim counts from the object's creation or, if the object named another instance before, from now, and comes after
-- those of nodes that show addresses. When Redis has lost its data, the objects still show who had the instance.
local LATER = 1e13 -- ms; more than any time

local function claim(claimants, name, created, known, shows_addresses)
  local score = tonumber(redis.call('ZSCORE', claimants, name) or 'inf')
  local since = LATER + (known and math.max(created, now_ms()) or created)
  if shows_addresses and (not known or redis.call('ZRANGE', claimants, 0, 0)[1] == name) then
    since = created
  end
  if score >= LATER and (since < LATER or score == math.huge) then
    -- Creation times are whole seconds: of objects of the same second the one that was stored first comes first.
    local others = redis.call('ZCOUNT', claimants, since, since + 999)
    redis.call('ZADD', claimants, since + math.min(others, 999), name)
  end
end

local stored = 0
for i = 3, #ARGV, 8 do
  local name, version, instance = ARGV[i], ARGV[i + 1], ARGV[i + 3]
  local known = redis.call('HGET', KEYS[2], name)
  if not known or ARGV[2] == '1' or newer(version, string.match(known, '^%S*')) then
    local before = known and string.match(known, '^%S* %S* (%S*)') or ''
    if before ~= '' and before ~= instance then
      redis.call('ZREM', ARGV[1] .. before, name)
    end
    if instance ~= '' then
      claim(ARGV[1] .. instance, name, tonumber(ARGV[i + 5]), known, ARGV[i + 6] == '1')
    end
    redis.call('HSET', KEYS[1], name, ARGV[i + 7])
    redis.call('HSET', KEYS[2], name, table.concat(ARGV, ' ', i + 1, i + 4))
    stored = stored + 1
  end
end
return stored
