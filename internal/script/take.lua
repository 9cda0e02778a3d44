-- Takes a lock for a value, without a fencing counter.
-- KEYS: lock, tombstone of the value. ARGV: value, TTL in ms.
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then return held end
if redis.call('EXISTS', KEYS[2]) == 1 then return '4 0 0' end
if held == ARGV[1] then return '1 0 0' end
if held then
  return string.format('2 %.0f 0', redis.call('PTTL', KEYS[1]))
end
local set = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if set.err then return set end
return '1 0 0'
