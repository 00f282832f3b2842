-- The clock of all scripts.
--
-- Redis' own time is the only clock that all processes share. The last argument of every script is an offset in
-- ms, taken off here. It is 0 except in tests, which let time pass without waiting
-- (`eni_tasks.state.connection.advance_clock`).

local CLOCK_OFFSET_MS = tonumber(table.remove(ARGV))

local function now_us()
  local clock = redis.call('TIME')
  return clock[1] * 1000000 + clock[2] + CLOCK_OFFSET_MS * 1000
end

local function now_ms()
  return math.floor(now_us() / 1000)
end
