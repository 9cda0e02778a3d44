-- Gives a lock back to the holder of a value whose key this node has lost,
-- unless the counter shows that another token was here since.
-- KEYS: lock, tombstone of the value, fence. ARGV: value, TTL in ms, fencing
-- token, limits of the counter.
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then return held end
local counter, err = read(KEYS[3])
if err then return err end
if redis.call('EXISTS', KEYS[2]) == 1 then return '4 0 0' end
if held == ARGV[1] then return string.format('1 0 %.0f', counter) end
local token = tonumber(ARGV[3])
if held or counter > token then return string.format('2 0 %.0f', counter) end
local text
text, err = store(KEYS[3], token, now(), ARGV[4])
if err then return err end
local set = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if set.err then return set end
return '1 0 ' .. text
