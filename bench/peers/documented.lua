-- The documented API of the device in HAProxy's Lua: tokens for a password, bearer check, fixed windows, errors in JSON. It does the least
-- that a client can see: tokens are in memory only, the password is a SHA-256 digest, there are no metrics, and one thread is used.
-- From the environment: the digest of the password in hexadecimal digits, the requests in a window of the API, and those of /oauth/token.
local PASSWORD = os.getenv('PASSWORD_SHA256')
local WINDOW = 60
local ACCESS_LIFETIME = 3600
local REFRESH_LIFETIME = 604800
local LONGEST_FORM = 8192
local MOST_WINDOWS = 100000
local LIMITS = { api = tonumber(os.getenv('API_REQUESTS')), oauth = tonumber(os.getenv('OAUTH_REQUESTS')) }

-- When a token expires, by its SHA-256 digest.
local access, refresh = {}, {}
local windows = { api = {}, oauth = {} }
local held = { api = 0, oauth = 0 }
local random = io.open('/dev/urandom', 'rb')

local function now()
  local time = core.now()
  return time.sec + time.usec / 1000000
end

-- Counts a request in the window of its client. Returns whether it passes, what remains, and when the window closes.
local function count(kind, key)
  local time, limit = now(), LIMITS[kind]
  local window = windows[kind][key]
  if window == nil or time >= window.closes then
    if window == nil then
      if held[kind] >= MOST_WINDOWS then
        key = 'overflow'
        window = windows[kind][key]
      else
        held[kind] = held[kind] + 1
      end
    end
    if window == nil or time >= window.closes then
      window = { closes = time + WINDOW, used = 0 }
      windows[kind][key] = window
    end
  end
  local passes = window.used < limit
  if passes then
    window.used = window.used + 1
  end
  return passes, limit - window.used, window.closes
end

-- An IPv6 client counts by its /64.
local function keyOf(address)
  if address:find(':', 1, true) == nil then
    return address
  end
  local groups = {}
  for group in address:gmatch('[^:]+') do
    groups[#groups + 1] = group
  end
  return table.concat(groups, ':', 1, math.min(4, #groups))
end

local function limitHeaders(kind, remaining, closes)
  return {
    ['x-ratelimit-limit'] = tostring(LIMITS[kind]),
    ['x-ratelimit-remaining'] = tostring(math.max(0, remaining)),
    ['x-ratelimit-reset'] = tostring(math.ceil(closes)),
  }
end

local function errorOf(code, description)
  return '{"error":"' .. code .. '","error_description":"' .. description .. '"}'
end

local function retryAfter(closes)
  return tostring(math.max(1, math.ceil(closes - now())))
end

-- A refusal of a request for the device.
local function refuse(txn, status, headers, body)
  local reply = txn:reply({ status = status })
  reply:add_header('content-type', 'application/json;charset=UTF-8')
  for name, value in pairs(headers) do
    reply:add_header(name, value)
  end
  reply:set_body(body)
  txn:done(reply)
end

-- The digest of the one bearer token of a request; and whether a token was shown.
local function bearerIn(txn)
  local fields = txn.http:req_get_headers()['authorization']
  if fields == nil then
    return nil, false
  end
  if fields[1] ~= nil then
    return nil, true
  end
  local scheme, token = fields[0]:match('^(%a+) +([%w%-._~+/]+=*)$')
  if scheme == nil or scheme:lower() ~= 'bearer' then
    return nil, fields[0]:lower():find('^bearer') ~= nil
  end
  return txn.c:sha2(token, 256), true
end

core.register_action('gate', { 'http-req' }, function(txn)
  local passes, remaining, closes = count('api', keyOf(txn.sf:src()))
  if not passes then
    local headers = limitHeaders('api', remaining, closes)
    headers['retry-after'] = retryAfter(closes)
    return refuse(txn, 429, headers, errorOf('rate_limited', 'The rate limit is exceeded.'))
  end
  local digest, shown = bearerIn(txn)
  local expires = digest ~= nil and access[digest] or nil
  if expires == nil or now() >= expires then
    local headers = limitHeaders('api', remaining, closes)
    headers['www-authenticate'] = 'Bearer realm="device"' .. (shown and ', error="invalid_token"' or '')
    local words = shown and 'The access token is not valid.' or 'A bearer token is required.'
    return refuse(txn, 401, headers, errorOf('invalid_token', words))
  end
  txn:set_var('txn.remaining', remaining)
  txn:set_var('txn.reset', math.ceil(closes))
  txn.http:req_del_header('authorization')
end, 0)

-- Strict form decoding. Returns nil for malformed percent-encoding, invalid UTF-8, or a repeated parameter.
local function formIn(text)
  local form = {}
  for pair in text:gmatch('[^&]+') do
    local name, value = pair:match('^([^=]*)=?(.*)$')
    for i, part in ipairs({ name, value }) do
      part = part:gsub('%+', ' ')
      if part:gsub('%%%x%x', ''):find('%', 1, true) ~= nil then
        return nil
      end
      part = part:gsub('%%(%x%x)', function(digits)
        return string.char(tonumber(digits, 16))
      end)
      if utf8.len(part) == nil then
        return nil
      end
      if i == 1 then
        name = part
      else
        value = part
      end
    end
    if form[name] ~= nil then
      return nil
    end
    form[name] = value
  end
  return form
end

local function mint(applet, tokens, expires)
  local token = applet.c:base64(random:read(32)):gsub('+', '-'):gsub('/', '_'):gsub('=', '')
  tokens[applet.c:sha2(token, 256)] = expires
  return token
end

local function issue(applet, refreshToken)
  local token = mint(applet, access, now() + ACCESS_LIFETIME)
  return 200,
    string.format(
      '{"access_token":"%s","token_type":"Bearer","expires_in":%d,"refresh_token":"%s"}',
      token,
      ACCESS_LIFETIME,
      refreshToken
    )
end

local function answer(applet)
  if applet.method ~= 'POST' then
    return 400, errorOf('invalid_request', 'The method is not allowed at this path.')
  end
  local types = applet.headers['content-type'] or {}
  if (types[0] or ''):lower():match('^application/x%-www%-form%-urlencoded') == nil then
    return 400, errorOf('invalid_request', 'The Content-Type must be application/x-www-form-urlencoded.')
  end
  local text = applet:receive(LONGEST_FORM + 1)
  local form = #text <= LONGEST_FORM and formIn(text) or nil
  if form == nil or (form.grant_type or '') == '' then
    return 400, errorOf('invalid_request', 'The form is not valid.')
  end
  if form.grant_type == 'password' then
    if (form.password or '') == '' then
      return 400, errorOf('invalid_request', 'A parameter is missing.')
    end
    if applet.c:hex(applet.c:sha2(form.password, 256)):lower() ~= PASSWORD then
      return 400, errorOf('invalid_grant', 'The password is not valid.')
    end
    return issue(applet, mint(applet, refresh, now() + REFRESH_LIFETIME))
  end
  if form.grant_type == 'refresh_token' then
    local expires = refresh[applet.c:sha2(form.refresh_token or '', 256)]
    if expires == nil or now() >= expires then
      return 400, errorOf('invalid_grant', 'The refresh token is not valid.')
    end
    return issue(applet, form.refresh_token)
  end
  return 400, errorOf('unsupported_grant_type', 'The grant type is not supported.')
end

core.register_service('token', 'http', function(applet)
  local passes, remaining, closes = count('oauth', keyOf(applet.sf:src()))
  local status, body
  if passes then
    status, body = answer(applet)
  else
    status, body = 429, errorOf('rate_limited', 'The rate limit is exceeded.')
    applet:add_header('retry-after', retryAfter(closes))
  end
  applet:set_status(status)
  for name, value in pairs(limitHeaders('oauth', remaining, closes)) do
    applet:add_header(name, value)
  end
  applet:add_header('content-type', 'application/json;charset=UTF-8')
  applet:add_header('cache-control', 'no-store')
  applet:add_header('pragma', 'no-cache')
  applet:add_header('content-length', tostring(#body))
  applet:start_response()
  applet:send(body)
end)

-- Expired tokens and closed windows leave once a minute.
core.register_task(function()
  while true do
    core.sleep(60)
    local time = now()
    for _, tokens in ipairs({ access, refresh }) do
      for digest, expires in pairs(tokens) do
        if time >= expires then
          tokens[digest] = nil
        end
      end
    end
    for kind, open in pairs(windows) do
      for key, window in pairs(open) do
        if time >= window.closes then
          open[key] = nil
          held[kind] = math.max(0, held[kind] - 1)
        end
      end
    end
  end
end)
