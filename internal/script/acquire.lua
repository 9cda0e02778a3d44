-- Takes a lock for a value and counts up the lock's fencing counter.
-- KEYS: lock, tombstone of the value, fence. ARGV: value, TTL in ms, hint, limits
-- of the counter.
local BUCKET = 1048576 -- us; the floors of nodes whose clocks agree are equal

local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then return held end
local counter, err = read(KEYS[3])
if err then return err end
if redis.call('EXISTS', KEYS[2]) == 1 then return '4 0 0' end
if held and held ~= ARGV[1] then
  return string.format('2 %.0f %.0f', redis.call('PTTL', KEYS[1]), counter)
end

local time = now()
if not held or counter == 0 then
  -- The floor is under every step, not only under the first: a node that comes
  -- back with an older counter must not repeat its numbers.
  local floor = time - time % BUCKET
  local hint = tonumber(ARGV[3])
  counter = counter + 1
  if hint > counter and hint <= floor + 2 * BUCKET then counter = hint end
  if floor > counter then counter = floor end
end

-- The counter first: if it cannot be stored there must be no lock.
local text
text, err = store(KEYS[3], counter, time, ARGV[4])
if err then return err end
if not held then
  local set = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  if set.err then return set end
end
return '1 0 ' .. text
