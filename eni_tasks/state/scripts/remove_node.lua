-- Remove a node with its memory and its journal.
--
-- KEYS    1: nodes, 2: versions, 3: memory, 4: journal
-- ARGV    1: node name, 2: uid or "", 3: resourceVersion or "", 4: prefix of the sets of claimants (same hash tag as
--         KEYS)
-- Answer  1, or 0 if no such node is stored, or one with another uid that is newer than the version
--
-- Why a script: a node of the same name may be created while the deletion of the first is being processed.

local known = redis.call('HGET', KEYS[2], ARGV[1])
if not known then
  return 0
end
local version, uid, instance = string.match(known, '^(%S*) (%S*) (%S*)')
if not version then
  version, uid, instance = '', '', ''
end
local same = ARGV[2] ~= '' and uid == ARGV[2]
local not_newer = ARGV[3] ~= '' and (#version < #ARGV[3] or (#version == #ARGV[3] and version <= ARGV[3]))
if (ARGV[2] ~= '' or ARGV[3] ~= '') and not same and not not_newer then
  return 0
end
if instance ~= '' then
  redis.call('ZREM', ARGV[4] .. instance, ARGV[1])
end
for i = 1, 4 do
  redis.call('HDEL', KEYS[i], ARGV[1])
end
return 1
