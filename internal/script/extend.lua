-- Renews a lock that holds a value, and the retention of its counter if there
-- is one. Creates nothing, never shortens.
-- KEYS: lock, fence if any. ARGV: value, TTL in ms, retention in ms or 0.
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then return held end
if not held then return '3 0 0' end
local left = redis.call('PTTL', KEYS[1])
if held ~= ARGV[1] then return string.format('2 %.0f 0', left) end
if left < tonumber(ARGV[2]) then
  local set = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
  if type(set) == 'table' then return set end
end
if KEYS[2] and ARGV[3] ~= '0' then
  redis.pcall('PEXPIRE', KEYS[2], ARGV[3])
end
return '1 0 0'
