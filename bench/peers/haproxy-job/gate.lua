-- The check of each request in Lua: exact windows and the bearer token. After tokens.lua. From the environment: the limits of the API and of
-- /oauth/token, each as requests/seconds.
local function limitFrom(name)
  local requests, seconds = os.getenv(name):match('^(%d+)/(%d+)$')
  return { requests = tonumber(requests), seconds = tonumber(seconds) }
end

local LIMITS = { api = limitFrom('API_LIMIT'), oauth = limitFrom('OAUTH_LIMIT') }
local MOST_WINDOWS = 100000

local windows = { api = {}, oauth = {} }
local held = 0

local function now()
  local time = core.now()
  return time.sec + time.usec / 1000000
end

-- The window of a client. A window that is open is never given up for another one: clients past the most share one.
local function windowOf(endpoint, client, time)
  local open = windows[endpoint]
  local key = (open[client] ~= nil or held < MOST_WINDOWS) and client or 'others'
  local window = open[key]
  if window == nil then
    held = held + 1
    window = { closes = 0 }
    open[key] = window
  end
  if time >= window.closes then
    window.closes, window.used = time + LIMITS[endpoint].seconds, 0
  end
  return window
end

-- Counts a request to an endpoint in the window of its client, and sets what the response says of it.
core.register_action('count', { 'http-req' }, function(txn, endpoint)
  local time, limit = now(), LIMITS[endpoint].requests
  local window = windowOf(endpoint, txn:get_var('txn.client'), time)
  local passes = window.used < limit
  if passes then
    window.used = window.used + 1
  else
    txn:set_var('txn.retry', math.max(1, math.ceil(window.closes - time)))
  end
  txn:set_var('txn.remaining', limit - window.used)
  txn:set_var('txn.reset', math.ceil(window.closes))
end, 1)

-- Sets whether the request shows a token, and whether that is a live access token.
core.register_action('identify', { 'http-req' }, function(txn)
  local fields = txn.http:req_get_headers()['authorization']
  if fields == nil then
    return
  end
  local token = fields[1] == nil and fields[0]:match('^[Bb][Ee][Aa][Rr][Ee][Rr] +(%S+)$') or nil
  txn:set_var('txn.shown', token ~= nil)
  txn:set_var('txn.admitted', token ~= nil and isLive(tokens.access, tokenDigest(txn, token)))
end, 0)

-- Closed windows leave once a minute.
core.register_task(function()
  while true do
    core.sleep(60)
    local time = now()
    for _, open in pairs(windows) do
      for client, window in pairs(open) do
        if time >= window.closes then
          open[client] = nil
          held = held - 1
        end
      end
    end
  end
end)
