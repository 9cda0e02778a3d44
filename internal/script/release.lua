-- Deletes a lock that holds a value, and tells the first who waits for it.
-- KEYS: lock, tombstone of the value, line if any. ARGV: value, life of the tombstone in
-- ms or 0 for none, how many waiters that do not listen are passed over.
-- The deletion comes first: a server out of memory still deletes, but refuses
-- the tombstone.

-- Takes the first waiter who listens out of the line and tells it. Whatever goes
-- wrong here, the lock is free: a user may have no right to the channel.
local function name()
  for _ = 1, tonumber(ARGV[3]) do
    local first = redis.pcall('ZPOPMIN', KEYS[3])
    if first.err or not first[1] then return 0 end
    local channel = string.match(first[1], '^(.*)/')
    local heard = channel and redis.pcall('PUBLISH', channel, first[1]) or 0
    if type(heard) == 'table' then return 0 end
    if heard > 0 then return 1 end
  end
  return 0
end

local held = redis.pcall('GET', KEYS[1])
local answer = '3 0 0'
if type(held) == 'table' then
  answer = held
elseif held == ARGV[1] then
  local del = redis.pcall('DEL', KEYS[1])
  if type(del) == 'table' then return del end
  answer = string.format('5 0 %.0f', KEYS[3] and name() or 0)
elseif held then
  answer = string.format('2 %.0f 0', redis.call('PTTL', KEYS[1]))
end
if ARGV[2] ~= '0' then
  local set = redis.pcall('SET', KEYS[2], '', 'PX', ARGV[2])
  if set.err then return set end
end
return answer
