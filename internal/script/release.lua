-- Deletes a lock that holds a value, and calls the first who waits for it.
-- KEYS: lock, tombstone of the value, line if any. ARGV: value, life of the tombstone in
-- ms or 0 for none, 1 if others may listen than this server knows of, else 0, and the
-- waiter who releases, if any: to call him would be to call nobody.
-- The deletion comes first: a server out of memory still deletes, but refuses
-- the tombstone.

-- Calls the first waiter who listens and has not been called, and takes those before
-- him out of the line. He stays there, in front: that shows the others that a free lock
-- is his. Whatever goes wrong here, the lock is free: a user may have no right to the
-- channel.
local function name()
  local at = 0
  for _ = 1, 16 do
    local first = redis.pcall('ZRANGE', KEYS[3], at, at, 'WITHSCORES')
    if first.err or not first[1] then return 0 end
    local waiter, ticket = first[1], tonumber(first[2])
    local channel = string.match(waiter, '^(.*)/')
    if waiter == ARGV[4] then
      at = at + 1
    else
      local heard = ticket >= 0 and channel and redis.pcall('PUBLISH', channel, waiter)
      if type(heard) == 'table' then return 0 end
      if heard and (heard > 0 or ARGV[3] == '1') then
        local marked = redis.pcall('ZADD', KEYS[3], string.format('%.0f', -ticket), waiter)
        if type(marked) == 'table' then redis.pcall('ZREM', KEYS[3], waiter) end
        return 1
      end
      local gone = redis.pcall('ZREM', KEYS[3], waiter)
      if type(gone) == 'table' then return 0 end
    end
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
  answer = '5 0 0'
  -- Most have nobody who waits, and then the line is not there: the cheapest look.
  if KEYS[3] and redis.pcall('EXISTS', KEYS[3]) ~= 0 and name() == 1 then answer = '5 0 1' end
elseif held then
  answer = string.format('2 %.0f 0', redis.call('PTTL', KEYS[1]))
end
if ARGV[2] ~= '0' then
  local set = redis.pcall('SET', KEYS[2], '', 'PX', ARGV[2])
  if set.err then return set end
end
return answer
