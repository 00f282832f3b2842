-- The clock of all scripts.
--
-- Redis' own time is the only clock that all processes share. The offset is 0 except in tests, which let time
-- pass without waiting (`eni_tasks.state.connection.advance_clock`).

local function now_ms()
  local clock = redis.call('TIME')
  return clock[1] * 1000 + math.floor(clock[2] / 1000) + CLOCK_OFFSET_MS
end
