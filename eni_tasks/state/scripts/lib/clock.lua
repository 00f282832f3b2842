-- The clock of all scripts.
--
-- Redis' own time is the only clock that all processes share. The offset is 0 except in tests, which let time
-- pass without waiting (`eni_tasks.state.connection.advance_clock`).

local function now_us()
  local clock = redis.call('TIME')
  return clock[1] * 1000000 + clock[2] + CLOCK_OFFSET_MS * 1000
end

local function now_ms()
  return math.floor(now_us() / 1000)
end
