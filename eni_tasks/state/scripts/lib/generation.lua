-- Whether this server's data may be older than what processes wrote, and no watcher has noticed yet.
--
-- The state generation names the server run in which it was last confirmed. Another run id means that the server was
-- restarted, or that a replica was promoted: either may lack the last writes. A server that does not tell its
-- run id (INFO not permitted) can't be checked here; then only what watchers remember helps.

local function state_is_unconfirmed(times_key)
  local confirmed = redis.call('HGET', times_key, 'run_id')
  if not confirmed or confirmed == '' then
    return false
  end
  local info = redis.pcall('INFO', 'server')
  local present = type(info) == 'string' and string.match(info, 'run_id:(%w+)')
  return present and present ~= confirmed
end
