-- Asks a service whether a request is let in: HTTPRoute's filter ExternalAuth, and auth-url of ingress-nginx. Loaded if a route asks.
-- The rules let a request in only if `txn.auth_answer` is `yes`, which one line here sets: an error, a time-out and any status that
-- the author did not name let no client in. The service gets no body, and nothing in place of what HAProxy says itself; members get
-- what the service says, and never what a client says under these names.

local keeper, decoded, plain, cleanConnection = headgate.keeper, headgate.decoded, headgate.plain, headgate.cleanConnection
local areFew = headgate.areFew

local SOCKET = 'unix@' .. os.getenv('HEADGATE_AUTH')
-- HAProxy's own socket answers earlier, whatever the service does.
local MOST_MS = 60000
-- HAProxy keeps this much room in its buffer for what rules add to a message.
local MOST_ADDED_BYTES = 8000
local MOST_LOCATION_BYTES = 6000
local QUESTIONS_PER_COLLECTION = 200

local function setOf(text)
  local set = {}
  for word in text:gmatch('%S+') do set[word] = true end
  return set
end

-- RFC 9110, section 7.6.1, and what belongs to a body or a connection.
local OF_CONNECTIONS = setOf([[connection keep-alive proxy-connection te trailer transfer-encoding upgrade http2-settings expect
  content-length content-encoding host]])
-- Conditions on another resource, and what only HAProxy may say.
local NEVER_ASKED = setOf([[range if-match if-none-match if-modified-since if-unmodified-since if-range x-original-url x-original-uri
  x-original-method x-auth-request-redirect x-sent-from x-real-ip x-scheme x-forwarded-for x-forwarded-host x-forwarded-uri
  x-forwarded-method]])
-- If members get all headers of an answer: without those of HAProxy's own.
local NEVER_COPIED = setOf([[content-type content-language content-location date server set-cookie age etag last-modified vary
  x-forwarded-for x-forwarded-host x-forwarded-port x-forwarded-proto forwarded x-real-ip x-request-id]])
local function isCopied(word)
  return not NEVER_COPIED[word] and not word:find('^x%-headgate%-') and not word:find('^x?%-?ssl%-client')
end
-- Cookies reach the client with these, as from nginx.
local GOOD_STATUSES = setOf('200 201 204 206 301 302 303 304 307 308')
local REDIRECTS = setOf('301 302 303 307 308')
-- Whom the service has let in, for the connection log; the first that members get.
local USER_HEADERS = {
  'x-auth-request-preferred-username', 'x-auth-request-user', 'x-auth-request-email', 'remote-user', 'x-forwarded-user',
  'x-forwarded-email', 'x-auth-user', 'x-authentik-username', 'x-vouch-user', 'x-webauth-user', 'x-user',
}
local REASONS = { ['401'] = 'Unauthorized', ['403'] = 'Forbidden' }

-- `aNAME=VALUE`, see externalAuthText().
local parsed = keeper(function(text)
  local pool, words = text:match('^(%S+) (.*)$')
  local asked = { pool = pool }
  for name, value in ('&' .. words):gmatch('&(%a)([^&]*)') do asked[name] = decoded(value) end
  for name, into in pairs({ q = 'sent', a = 'taken' }) do
    if asked[name] ~= '*' then
      asked[into] = {}
      for header in asked[name]:gmatch('[^,]+') do
        if not OF_CONNECTIONS[plain(header)] then asked[into][plain(header)] = header:lower() end
      end
    end
  end
  return asked
end)

local escapes = {}
for code = 0, 255 do escapes[string.char(code)] = string.format('%%%02X', code) end

local function escaped(text) return (text:gsub('[^A-Za-z0-9._~-]', escapes)) end

-- A host has no other characters.
local function hostOf(text) return (text:gsub('[^A-Za-z0-9.:_%[%]-]', escapes)) end

-- Most questions do not need it.
local ESCAPED = {
  __index = function(values, name)
    if name == 'escaped_request_uri' then return escaped(rawget(values, 'request_uri')) end
  end,
}

local function valuesOf(txn)
  local uri = txn.f:pathq()
  local scheme = txn.f:req_fhdr('x-forwarded-proto') == 'https' and 'https' or 'http'
  return setmetatable({
    host = hostOf(txn:get_var('txn.host') or ''),
    http_host = hostOf(txn.f:req_hdr('host') or ''),
    request_uri = uri,
    scheme = scheme,
    uri = txn:get_var('txn.path') or '',
    request_method = txn.f:method(),
    remote_addr = txn.f:src(),
  }, ESCAPED)
end

-- Within a query, a value cannot become another parameter.
local UNCHANGED = setOf('host http_host escaped_request_uri scheme remote_addr')
local function filled(text, values)
  local path, query = text:match('^([^?]*)(.*)$')
  path = path:gsub('%$([a-z_]+)', values)
  query = query:gsub('%$([a-z_]+)', function(name)
    local value = values[name]
    return value and (UNCHANGED[name] and value or escaped(value))
  end)
  return path .. query
end

-- What HAProxy says of the request; a list of headers names those that the service gets.
local function ownHeaders(asked, values)
  local own = {
    ['x-original-url'] = values.scheme .. '://' .. values.http_host .. values.request_uri,
    ['x-original-method'] = values.request_method,
    ['x-real-ip'] = values.remote_addr,
    ['x-forwarded-for'] = values.remote_addr,
    ['x-forwarded-host'] = values.http_host,
  }
  if asked.sent == nil then
    own['x-sent-from'] = 'headgate'
    if asked.x ~= '' then own['x-auth-request-redirect'] = (asked.x:gsub('%$([a-z_]+)', values)) end
    return own
  end
  own['x-forwarded-uri'], own['x-forwarded-method'] = values.request_uri, values.request_method
  local named = {}
  for name, value in pairs(own) do named[name] = asked.sent[name] and value end
  return named
end

-- The headers of the question.
local function headersOf(txn, asked, values)
  local headers = {}
  for name, all in pairs(txn.http:req_get_headers()) do
    local word = plain(name)
    local isMeant = asked.sent == nil or asked.sent[word] == name or name == 'authorization'
    if isMeant and not (NEVER_ASKED[word] or OF_CONNECTIONS[word] or word:find('^x%-headgate%-')) then
      headers[name] = {}
      for at = 0, #all do table.insert(headers[name], all[at]) end
    end
  end
  for name, value in pairs(ownHeaders(asked, values)) do headers[name] = { value } end
  headers.host = { asked.h == '' and values.http_host or filled(asked.h, values) }
  headers['x-headgate-pool'] = { asked.pool }
  headers['x-headgate-method'] = { asked.m == '*' and values.request_method or asked.m }
  return headers
end

-- A question holds two more connections of HAProxy's: a service that does not answer must not take those of all namespaces. If the
-- client goes, the request ends without a word here, and garbage collection finds its question.
local MOST_OPEN_OF_NAMESPACE = 512
-- Of this thread.
local SHARE_OF_CONNECTIONS = 1 / 4
local COLLECTION_INTERVAL_MS = 100
local open, mostOpen, collectedMs = {}, nil, 0

local function finish(question)
  local namespace = question.namespace
  question.namespace = nil
  if namespace == nil then return end
  open[namespace] = open[namespace] > 1 and open[namespace] - 1 or nil
end

local ENDS = { __gc = finish }

local function hasRoom(namespace)
  if mostOpen == nil then
    local info = core.get_info()
    local share = (tonumber(info.Maxconn) or 0) / (tonumber(info.Nbthread) or 1) * SHARE_OF_CONNECTIONS
    mostOpen = math.max(1, math.min(MOST_OPEN_OF_NAMESPACE, math.floor(share)))
  end
  return (open[namespace] or 0) < mostOpen
end

-- nil if the namespace has too many.
local function opened(namespace)
  local now = core.now()
  local nowMs = now.sec * 1000 + now.usec // 1000
  if not hasRoom(namespace) and math.abs(nowMs - collectedMs) >= COLLECTION_INTERVAL_MS then
    collectedMs = nowMs
    collectgarbage()
  end
  if not hasRoom(namespace) then return nil end
  open[namespace] = (open[namespace] or 0) + 1
  return setmetatable({ namespace = namespace }, ENDS)
end

-- What HAProxy takes of a question: its buffer without the room that rules need, and what each header costs it there.
local MOST_ASKED_BYTES = 15000
local BYTES_OF_HEADER = 12
local function bytesOf(headers)
  local bytes = 0
  for name, values in pairs(headers) do
    for _, value in ipairs(values) do bytes = bytes + #name + #value + BYTES_OF_HEADER end
  end
  return bytes
end

local questions = 0

-- A worker that a reload stops closes what it has just accepted: HAProxy's own client has no answer then, and says 502.
local MOST_SENT, AGAIN_MS = 4, 10
local function sent(request)
  local isHead, answer = request.headers['x-headgate-method'][1] == 'HEAD', nil
  for sending = 1, MOST_SENT do
    if sending > 1 then core.msleep(AGAIN_MS * sending) end
    local client = core.httpclient()
    if isHead then answer = client:head(request) else answer = client:get(request) end
    if answer.status ~= 502 then break end
  end
  return answer
end

-- For custom-errors.lua.
headgate.opened, headgate.finish, headgate.sent = opened, finish, sent

-- nil without one, and then perhaps what is too large to be asked about: `url` or `headers`.
local function answerOf(txn, asked, values)
  -- This request is a question itself: the service leads back here.
  if asked.pool == 'none' or txn.f:req_fhdr('x-headgate-question') ~= nil then return nil end
  local headers = headersOf(txn, asked, values)
  local uri = filled(asked.u, values) .. (asked.p == '1' and values.request_uri or '')
  if uri:sub(1, 1) ~= '/' then return nil end
  local bytes = #uri + bytesOf(headers)
  if bytes > MOST_ASKED_BYTES or not areFew(headers) then
    return nil, #values.request_uri > bytes / 4 and 'url' or 'headers'
  end
  questions = questions + 1
  if questions % QUESTIONS_PER_COLLECTION == 0 then collectgarbage() end
  local question = opened(asked.pool:match('^[^:]*:([^:]*)') or '')
  if question == nil then return nil end
  local answer = sent({ url = 'http://auth' .. uri, dst = SOCKET, headers = headers, timeout = MOST_MS })
  finish(question)
  return answer
end

local function all(answer, name)
  local found = {}
  for given, values in pairs(answer.headers or {}) do
    if given:lower() == name then
      for at = 0, #values do table.insert(found, values[at]) end
    end
  end
  return found
end

-- A header that the client has sent must not be believed, also if the service does not say it.
local function giveToMember(txn, asked, answer)
  local http, taken, bytes = txn.http, {}, 0
  for name, values in pairs(answer.headers or {}) do
    local word = plain(name)
    local isMeant = asked.taken == nil and isCopied(word) or asked.taken ~= nil and asked.taken[word] ~= nil
    if isMeant and not OF_CONNECTIONS[word] then
      for at = 0, #values do
        -- HAProxy takes it from a server, and not from a client.
        if values[at]:find('\0', 1, true) then return false end
        table.insert(taken, { name = name, value = values[at] })
        bytes = bytes + #name + #values[at] + 4
      end
    end
  end
  if bytes > MOST_ADDED_BYTES then return false end
  local isTaken = {}
  for word in pairs(asked.taken or {}) do isTaken[word] = true end
  for _, each in ipairs(taken) do isTaken[plain(each.name)] = true end
  for name in pairs(http:req_get_headers()) do
    if isTaken[plain(name)] then http:req_del_header(name) end
  end
  for _, each in ipairs(taken) do
    local before = txn.f:req_fhdr_cnt(each.name)
    http:req_add_header(each.name, each.value)
    -- HAProxy had no room for it.
    if txn.f:req_fhdr_cnt(each.name) ~= before + 1 then return false end
  end
  return true
end

-- Answers that count for a time, by what the author names of a request. A request without any credential is always asked about:
-- what a service says of it by an address, say, would hold for everybody.
local MOST_KEPT_BYTES = 8000000
local BYTES_OF_ENTRY = 500
local kept, keptBytes = {}, 0

-- Each with its length, so that other values are never the same text.
local function joined(texts)
  local parts = {}
  for _, text in ipairs(texts) do table.insert(parts, #text .. ':' .. text) end
  return table.concat(parts)
end

-- All fields of the header: which of them counts is the service's own choice.
local function headerTexts(txn, name)
  local headers, names, texts = txn.http:req_get_headers(), {}, {}
  for header in pairs(headers) do
    if plain(header) == name then table.insert(names, header) end
  end
  table.sort(names)
  for _, header in ipairs(names) do
    for at = 0, #headers[header] do
      if headers[header][at] ~= '' then table.insert(texts, headers[header][at]) end
    end
    table.insert(texts, '')
  end
  return texts
end

local function cookieTexts(txn, name)
  local texts = {}
  for _, header in ipairs(headerTexts(txn, 'cookie')) do
    for pair in header:gmatch('[^;]+') do
      local given, value = pair:match('^%s*([^=%s]+)%s*=%s*(.-)%s*$')
      if given == name and value ~= '' then table.insert(texts, value) end
    end
  end
  return texts
end

-- Empty without a value.
local function keyValue(txn, variable, values)
  local kind, name = variable:match('^(%l+)_(.+)$')
  if kind == 'http' then return (joined(headerTexts(txn, plain(name))):gsub('^0:$', '')) end
  if kind == 'cookie' then return joined(cookieTexts(txn, name)) end
  if kind == 'arg' then return txn.f:url_param(name) or '' end
  return values[variable] or ''
end

-- nil if the service must be asked.
local function keyOf(txn, asked, values)
  if (asked.k or '') == '' then return nil end
  local texts, isKnown = { txn:get_var('txn.rule_id'), values.http_host, values.request_method }, false
  for mark, variable in asked.k:gmatch('(!?)([^,]+)') do
    local value = keyValue(txn, variable, values)
    isKnown = isKnown or mark == '!' and value ~= ''
    table.insert(texts, value)
  end
  return isKnown and joined(texts) or nil
end

local function keptAnswer(key)
  local answer = key and kept[key]
  return answer and answer.ends > core.now().sec and answer or nil
end

-- RFC 9111, section 3: not all that may be kept for the one client who asks may be kept here.
local function mayKeep(answer)
  if #all(answer, 'set-cookie') > 0 then return false end
  for _, text in ipairs(all(answer, 'cache-control')) do
    local words = text:lower()
    if words:find('no%-store') or words:find('no%-cache') or words:find('private') then return false end
  end
  for _, text in ipairs(all(answer, 'vary')) do
    for name in text:lower():gmatch('[^,%s]+') do
      if name ~= 'origin' and not name:find('^accept') then return false end
    end
  end
  return true
end

local function keep(key, asked, answer)
  local seconds = tonumber((',' .. asked.d):match(',' .. (math.tointeger(answer.status) or 0) .. ':(%d+)'))
  if seconds == nil or not mayKeep(answer) then return end
  local bytes = #key + BYTES_OF_ENTRY
  for name, values in pairs(answer.headers or {}) do
    for at = 0, #values do bytes = bytes + #name + #values[at] end
  end
  if keptBytes + bytes > MOST_KEPT_BYTES then kept, keptBytes = {}, 0 end
  if kept[key] == nil then keptBytes = keptBytes + bytes end
  kept[key] = { status = answer.status, headers = answer.headers, ends = core.now().sec + seconds }
end

local function locationOf(txn, asked, values)
  local location = filled(asked.s, values)
  if #location <= MOST_LOCATION_BYTES then return location end
  values.request_uri, values.uri = '/', '/'
  return filled(asked.s, values)
end

-- Of several names none is the one that members read.
local function noteUser(txn, asked, answer)
  for _, name in ipairs(USER_HEADERS) do
    local values = (asked.taken == nil or asked.taken[name] ~= nil) and all(answer, name) or {}
    if #values == 1 and values[1] ~= '' then
      txn:set_var('txn.user', values[1])
      return
    end
  end
end

-- With nothing but these headers: HAProxy's own answers follow for what has none.
local function refuse(txn, status, headers, cookies)
  headers = headers or {}
  if #cookies > 0 then headers['set-cookie'] = cookies end
  if next(headers) == nil then return false end
  headers['cache-control'] = { 'no-store' }
  headers['content-type'] = { 'text/plain' }
  local reason = REASONS[tostring(status)] or 'Found'
  txn:set_var('txn.auth_answer', 'refused')
  txn:done(txn:reply({ status = status, reason = reason, headers = headers, body = reason .. '\n' }))
end

local function askService(txn)
  local asked = parsed(txn:get_var('txn.external_auth'))
  local values = valuesOf(txn)
  local key = keyOf(txn, asked, values)
  local answer, tooLarge = keptAnswer(key), nil
  if answer == nil then
    answer, tooLarge = answerOf(txn, asked, values)
    if tooLarge ~= nil then return 'large ' .. tooLarge end
    if key ~= nil and answer ~= nil then keep(key, asked, answer) end
  end
  local status = answer and math.tointeger(answer.status) or 0
  local isIn = status == 200 or asked.l == '2xx' and status >= 200 and status <= 299
  local cookies = answer and all(answer, 'set-cookie') or {}
  local decided = status > 0 and 'authorization ' .. status or 'authorization'
  txn:set_var('txn.decision', 'refused ' .. decided)
  if isIn then
    cleanConnection(txn)
    if not giveToMember(txn, asked, answer) then return 'away' end
    noteUser(txn, asked, answer)
    txn:set_var('txn.decision', 'passed ' .. decided)
    if #cookies > 0 then
      txn:set_var('txn.auth_cookies', table.concat(cookies, '\n'))
      txn:set_var('txn.auth_cookies_always', asked.c)
    end
    return 'yes'
  end
  local given = all(answer or {}, 'location')[1]
  if asked.r == '1' and given ~= nil and REDIRECTS[tostring(status)] then
    refuse(txn, status, { location = { given } }, cookies)
  elseif status == 401 and asked.s ~= '' then
    refuse(txn, 302, { location = { locationOf(txn, asked, values) } }, cookies)
  elseif status == 401 then
    local challenges = all(answer, 'www-authenticate')
    refuse(txn, 401, #challenges > 0 and { ['www-authenticate'] = challenges } or nil, cookies)
    return 'unknown'
  elseif status == 403 then
    refuse(txn, 403, nil, (asked.c == '1' or asked.r == '1') and cookies or {})
    return 'no'
  end
  return 'away'
end

core.register_action('external_auth', { 'http-req' }, function(txn)
  txn:set_var('txn.auth_answer', 'away')
  txn:set_var('txn.decision', 'refused authorization')
  txn:set_var('txn.auth_answer', askService(txn))
end)

-- Of an answer of the service.
core.register_action('without_body', { 'http-res' }, function(txn)
  local headers = {}
  for name, values in pairs(txn.http:res_get_headers()) do
    if not OF_CONNECTIONS[plain(name)] then
      headers[name] = {}
      for at = 0, #values do table.insert(headers[name], values[at]) end
    end
  end
  txn:done(txn:reply({ status = txn.f:status(), headers = headers }))
end)

core.register_action('auth_cookies', { 'http-res' }, function(txn)
  local status = tostring(txn.f:status())
  if txn:get_var('txn.auth_cookies_always') ~= '1' and not GOOD_STATUSES[status] then return end
  for cookie in txn:get_var('txn.auth_cookies'):gmatch('[^\n]+') do txn.http:res_add_header('set-cookie', cookie) end
end)
