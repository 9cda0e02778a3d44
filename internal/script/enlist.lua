-- Puts a waiter into the line of a lock, and tells whether that is free.
-- KEYS: lock, line. ARGV: waiter, ticket in us, life of the line in ms.
--
-- The line is a sorted set. Its order is that of the clients' clocks, since these
-- are the same on all nodes: by the time of arrival here, each node might call
-- somebody else. Clocks that are wrong gain at most ten seconds by it. A ticket below
-- zero is that of a waiter who has been called. One who comes again was called in vain.
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then return held end
local had = redis.pcall('ZSCORE', KEYS[2], ARGV[1])
if type(had) == 'table' then return had end
local t = redis.call('TIME')
local time = tonumber(t[1]) * 1000000 + tonumber(t[2])
local ticket = had and math.abs(tonumber(had)) or math.max(tonumber(ARGV[2]), time - 10000000)
ticket = math.min(ticket, time)
local added = redis.pcall('ZADD', KEYS[2], string.format('%.0f', ticket), ARGV[1])
if type(added) == 'table' then return added end
redis.call('PEXPIRE', KEYS[2], ARGV[3])
local ahead = redis.call('ZRANK', KEYS[2], ARGV[1])
if held then return string.format('2 %.0f %.0f', redis.call('PTTL', KEYS[1]), ahead) end
return string.format('3 0 %.0f', ahead)
