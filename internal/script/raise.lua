-- Raises the fencing counter of a lock that holds a value.
-- KEYS: lock, fence. ARGV: value, number, limits of the counter.
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then return held end
if not held then return '3 0 0' end
if held ~= ARGV[1] then return '2 0 0' end
local counter, err = read(KEYS[2])
if err then return err end
counter = math.max(counter, tonumber(ARGV[2]))
local text
text, err = store(KEYS[2], counter, now(), ARGV[3])
if err then return err end
return '1 0 ' .. text
