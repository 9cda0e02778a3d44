-- Put in front of each script that counts.
--
-- Counters are exact in Lua up to 2^53. They are printed with %.0f and nothing
-- else: tostring would round them to 14 digits. What is joined with .. is text
-- already. Every read is a pcall whose error is returned as it is, since one that
-- Redis wraps loses its first word. Scripts run with a lock on all of the server, so
-- they say what is cheapest: a global name is a look-up, a pattern is a small program.

-- The value of a counter, 0 if there is none, or an error.
local function read(key)
  local text = redis.pcall('GET', key)
  if not text then return 0 end
  if type(text) == 'table' then
    -- Under a word of its own, so that it does not pass for the lock's type.
    if string.match(text.err, '^WRONGTYPE') then text = redis.error_reply('REDLOCKCOUNTER is not a string') end
    return nil, text
  end
  local n = #text <= 16 and not string.find(text, '%D') and tonumber(text)
  if not n or n > 9007199254740991 then
    return nil, redis.error_reply('REDLOCKCOUNTER is not a number below 2^53')
  end
  return n
end

-- The time in us.
local function now()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end

-- Stores a counter, unless it is ahead of the clock by more than allowed. The
-- limits are 'retention:bound': for how many ms to keep it, 0 for ever, and the
-- bound in us. Returns the counter as text, or nil and an error.
local function store(key, n, time, limits)
  local colon = string.find(limits, ':', 1, true)
  local retention = string.sub(limits, 1, colon - 1)
  if n > time + string.sub(limits, colon + 1) then
    return nil, redis.error_reply('REDLOCKAHEAD counter is ahead of the clock by more than the bound')
  end
  local text = string.format('%.0f', n)
  local set
  if retention == '0' then
    set = redis.pcall('SET', key, text)
  else
    set = redis.pcall('SET', key, text, 'PX', retention)
  end
  if set.err then return nil, set end
  return text
end

