-- The tokens of the documented API: forms are read, the password is checked, tokens are minted, written to a journal and read back at a start.
-- It needs one thread, a userlist `device` with the user `admin`, and from the environment STATE, a folder, and PASSWORD_ID, which differs for
-- each password. The journals `access` and `refresh` have a line for each token, its SHA-256 digest and its expiry. A journal of another
-- password is not read: its tokens are void. If HAProxy has a journal as a map, TOKEN_MAP names it.
local STATE = os.getenv('STATE')
local TOKEN_MAP = os.getenv('TOKEN_MAP')
local HEADER = '# ' .. os.getenv('PASSWORD_ID')
local ACCESS_LIFETIME = 3600
local REFRESH_LIFETIME = 604800
local LONGEST_FORM = 8192
local MOST_TOKENS = 20000

local random = io.open('/dev/urandom', 'rb')
random:setvbuf('no')

local function livingIn(path, time)
  local file, expiries = io.open(path), {}
  if file == nil then
    return expiries
  end
  if file:read('l') == HEADER then
    for line in file:lines() do
      local digest, expires = line:match('^(%x+) (%d+)$')
      if digest ~= nil and tonumber(expires) > time then
        expiries[digest] = tonumber(expires)
      end
    end
  end
  file:close()
  return expiries
end

-- The tokens of one kind, from the journal of an earlier process. Writes the journal anew, without those that have expired.
local function openJournal(kind)
  local path = STATE .. '/' .. kind
  local kept = { kind = kind, path = path, expiries = livingIn(path, os.time()), held = 0 }
  kept.file = assert(io.open(path .. '.new', 'w'))
  kept.file:setvbuf('line')
  kept.file:write(HEADER, '\n')
  for digest, expires in pairs(kept.expiries) do
    kept.file:write(digest, ' ', expires, '\n')
    kept.held = kept.held + 1
  end
  assert(os.rename(path .. '.new', path))
  return kept
end

tokens = { access = openJournal('access'), refresh = openJournal('refresh') }

function tokenDigest(txn, token)
  return txn.c:hex(txn.c:sha2(token, 256))
end

-- Whether this is a live token of this kind. At its expiry second it is none.
function isLive(kept, digest)
  local expires = kept.expiries[digest]
  return expires ~= nil and core.now().sec < expires
end

local function mint(txn, kept, lifetime)
  local token = txn.c:base64(random:read(32)):gsub('[+/=]', { ['+'] = '-', ['/'] = '_', ['='] = '' })
  local digest, expires = tokenDigest(txn, token), core.now().sec + lifetime
  kept.expiries[digest] = expires
  kept.held = kept.held + 1
  kept.file:write(digest, ' ', expires, '\n')
  if kept.path == TOKEN_MAP then
    core.set_map(TOKEN_MAP, digest, tostring(expires))
  end
  return token
end

-- Decodes one name or value of a form. Returns nil if its escapes or its UTF-8 are malformed.
local function decoded(text)
  local spaced = text:gsub('+', ' ')
  if spaced:gsub('%%%x%x', ''):find('%', 1, true) ~= nil then
    return nil
  end
  local plain = spaced:gsub('%%(%x%x)', function(digits)
    return string.char(tonumber(digits, 16))
  end)
  return utf8.len(plain) ~= nil and plain or nil
end

-- The parameters of a form; nil if it is malformed or repeats one. An empty parameter counts as missing.
local function parametersIn(text)
  local parameters, seen = {}, {}
  for pair in text:gmatch('[^&]+') do
    local name, value = pair:match('^([^=]*)=?(.*)$')
    name, value = decoded(name), decoded(value)
    if name == nil or value == nil or seen[name] then
      return nil
    end
    seen[name] = true
    parameters[name] = value ~= '' and value or nil
  end
  return parameters
end

-- HAProxy compares passwords only with the credentials of a request, and only up to a zero byte.
local function isPassword(txn, password)
  if password:find('\0', 1, true) ~= nil then
    return false
  end
  txn.http:req_set_header('Authorization', 'Basic ' .. txn.c:base64('admin:' .. password))
  return txn.f:http_auth('device') == 1
end

-- Returns the refresh token of a grant, or nil and the error.
local function granted(txn)
  if txn.f:method() ~= 'POST' then
    return nil, 'invalid_request', 'The method must be POST.'
  end
  local kind = (txn.f:req_fhdr('content-type') or ''):lower():match('^%s*([^;%s]*)')
  local text = txn.f:req_body() or ''
  local form = kind == 'application/x-www-form-urlencoded' and #text <= LONGEST_FORM and parametersIn(text) or nil
  if form == nil or form.grant_type == nil then
    return nil, 'invalid_request', 'The body must be a form of at most 8 KiB that has each parameter once.'
  elseif form.grant_type ~= 'password' and form.grant_type ~= 'refresh_token' then
    return nil, 'unsupported_grant_type', 'The grant type must be password or refresh_token.'
  elseif form[form.grant_type] == nil then
    return nil, 'invalid_request', 'The parameter ' .. form.grant_type .. ' is missing.'
  elseif tokens.access.held >= MOST_TOKENS or tokens.refresh.held >= MOST_TOKENS then
    return nil, 'server_error', 'There is no room for more tokens.'
  elseif form.grant_type == 'refresh_token' then
    if not isLive(tokens.refresh, tokenDigest(txn, form.refresh_token)) then
      return nil, 'invalid_grant', 'The refresh token is not valid.'
    end
    return form.refresh_token
  elseif not isPassword(txn, form.password) then
    return nil, 'invalid_grant', 'The password is not valid.'
  end
  return mint(txn, tokens.refresh, REFRESH_LIFETIME)
end

local ANSWER = '{"access_token":"%s","token_type":"Bearer","expires_in":%d,"refresh_token":"%s"}'
local ERROR = '{"error":"%s","error_description":"%s"}'

-- Answers a request to /oauth/token whose body has been read.
core.register_action('answer', { 'http-req' }, function(txn)
  local refreshToken, code, description = granted(txn)
  local reply = txn:reply({ status = 200 })
  reply:add_header('Content-Type', 'application/json;charset=UTF-8')
  reply:add_header('Cache-Control', 'no-store')
  reply:add_header('Pragma', 'no-cache')
  if refreshToken ~= nil then
    reply:set_body(ANSWER:format(mint(txn, tokens.access, ACCESS_LIFETIME), ACCESS_LIFETIME, refreshToken))
  else
    reply:set_status(code == 'server_error' and 500 or 400)
    reply:add_header('Allow', 'POST')
    reply:set_body(ERROR:format(code, description))
  end
  txn:done(reply)
end, 0)

-- Expired tokens leave once a minute.
core.register_task(function()
  while true do
    core.sleep(60)
    local time = core.now().sec
    for _, kept in pairs(tokens) do
      for digest, expires in pairs(kept.expiries) do
        if time >= expires then
          kept.expiries[digest] = nil
          kept.held = kept.held - 1
          if kept.path == TOKEN_MAP then
            core.del_map(TOKEN_MAP, digest)
          end
        end
      end
    end
  end
end)
