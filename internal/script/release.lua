-- Deletes a lock that holds a value.
-- KEYS: lock, tombstone of the value. ARGV: value, life of the tombstone in ms
-- or 0 for none.
-- The deletion comes first: a server out of memory still deletes, but refuses
-- the tombstone.
local held = redis.pcall('GET', KEYS[1])
local answer = '3 0 0'
if type(held) == 'table' then
  answer = held
elseif held == ARGV[1] then
  local del = redis.pcall('DEL', KEYS[1])
  if type(del) == 'table' then return del end
  answer = '5 0 0'
elseif held then
  answer = string.format('2 %.0f 0', redis.call('PTTL', KEYS[1]))
end
if ARGV[2] ~= '0' then
  local set = redis.pcall('SET', KEYS[2], '', 'PX', ARGV[2])
  if set.err then return set end
end
return answer
