-- Put in front of each script that counts.
--
-- Counters are exact in Lua up to 2^53. They are printed with %.0f and nothing
-- else: tostring would round them to 14 digits. Every read is a pcall whose
-- error is returned as it is, since one that Redis wraps loses its first word.

-- The value of a counter, 0 if there is none, or an error.
local function read(key)
  local text = redis.pcall('GET', key)
  if type(text) == 'table' then
    -- Under a word of its own, so that it does not pass for the lock's type.
    if string.match(text.err, '^WRONGTYPE') then text = redis.error_reply('REDLOCKCOUNTER is not a string') end
    return nil, text
  end
  if not text then return 0 end
  local n = string.match(text, '^%d+$') and #text <= 16 and tonumber(text)
  if not n or n > 9007199254740991 then
    return nil, redis.error_reply('REDLOCKCOUNTER is not a number below 2^53')
  end
  return n
end

-- The time in us.
local function now()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end

-- Stores a counter, unless it is ahead of the clock by more than allowed. The
-- limits are 'retention:bound': for how many ms to keep it, 0 for ever, and the
-- bound in us. Returns an error or nil.
local function store(key, n, time, limits)
  local retention, bound = string.match(limits, '^(%d+):(%d+)$')
  if n > time + tonumber(bound) then
    return redis.error_reply('REDLOCKAHEAD counter is ahead of the clock by more than the bound')
  end
  local set
  if retention == '0' then
    set = redis.pcall('SET', key, string.format('%.0f', n))
  else
    set = redis.pcall('SET', key, string.format('%.0f', n), 'PX', retention)
  end
  if set.err then return set end
end

