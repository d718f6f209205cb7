-- The parts of routes that HAProxy's rules cannot express: conditions on a request, changes of headers whose names are data,
-- ranges of client addresses, and copies of requests. What is parsed is kept by its id or text, which never changes its meaning.
-- Everything here is read from maps that only the agent writes; texts of authors are percent-encoded there.

local lists = Map.new(os.getenv('HEADGATE_ROUTES') .. '/lists', Map._str)

-- Parsed texts; emptied when it is full, because routes come and go.
local MAX_KEPT = 10000
local function keeper(parse)
  local kept, count = {}, 0
  return function(text)
    local value = kept[text]
    if value == nil then
      if count >= MAX_KEPT then kept, count = {}, 0 end
      value = parse(text)
      kept[text], count = value, count + 1
    end
    return value
  end
end

local function decoded(text)
  return (text:gsub('%%(%x%x)', function(digits) return string.char(tonumber(digits, 16)) end))
end

-- An author's pattern may take exponential time for a client's text: PCRE ends it after so many steps, and it does not match.
local MOST_STEPS = '(*LIMIT_MATCH=100000)'

-- nil for a text that is no regular expression: its condition is never met.
local function regex(pattern)
  local isValid, compiled = Regex.new(MOST_STEPS .. pattern, true)
  -- A HAProxy without PCRE.
  if not isValid then isValid, compiled = Regex.new(pattern, true) end
  return isValid and compiled or nil
end

-- The values of a header are lines of the text of all headers, in which names are in lower case.
local function header(name, value)
  local line = '\r\n' .. name .. ': ' .. value .. '\r\n'
  return function(request) return request.headers():find(line, 1, true) ~= nil end
end

local function headerRegex(name, pattern)
  local start, compiled = '\r\n' .. name .. ': ', regex('^(?:' .. pattern .. ')$')
  return function(request)
    local headers = request.headers()
    local _, last = headers:find(start, 1, true)
    while compiled and last do
      local ending = headers:find('\r\n', last, true)
      if compiled:match(headers:sub(last + 1, ending - 1)) then return true end
      _, last = headers:find(start, ending, true)
    end
    return false
  end
end

local conditions = {
  m = function(method) return function(request) return request.method() == method end end,
  P = function(pattern)
    local compiled = regex('^(?:' .. pattern .. ')')
    return function(request) return compiled ~= nil and compiled:match(request.path()) end
  end,
  h = header,
  H = headerRegex,
  q = function(name, value) return function(request) return request.query()[name] == value end end,
  Q = function(name, pattern)
    local compiled = regex('^(?:' .. pattern .. ')$')
    return function(request)
      local value = request.query()[name]
      return compiled ~= nil and value ~= nil and compiled:match(value)
    end
  end,
}

-- The first value of each parameter.
local function parsedQuery(text)
  local query = {}
  for name, value in text:gsub('+', ' '):gmatch('([^&=]+)=?([^&]*)') do
    name = decoded(name)
    if query[name] == nil then query[name] = decoded(value) end
  end
  return query
end

-- `TARGET&CONDITION&CONDITION|TARGET&...`
local parsedList = keeper(function(id)
  local candidates = {}
  for text in (lists:lookup(id) or ''):gmatch('[^|]+') do
    local candidate = { target = text:match('^[^&]+'), conditions = {} }
    for kind, words in text:gmatch('&(%a)([^&]*)') do
      local name, value = words:match('^([^=]*)=?(.*)$')
      table.insert(candidate.conditions, conditions[kind](decoded(name), decoded(value)))
    end
    table.insert(candidates, candidate)
  end
  return candidates
end)

-- What a list asks for is read once.
local function requestOf(txn)
  local function once(read)
    local value
    return function()
      if value == nil then value = read() end
      return value
    end
  end
  return {
    method = once(function() return txn.f:method() end),
    path = once(function() return txn:get_var('txn.path') or '' end),
    headers = once(function() return '\r\n' .. txn.f:req_hdrs() end),
    query = once(function() return parsedQuery(txn.f:query() or '') end),
  }
end

local function isMet(candidate, request)
  for _, condition in ipairs(candidate.conditions) do
    if not condition(request) then return false end
  end
  return true
end

local function pick(id, request)
  for _, candidate in ipairs(parsedList(id)) do
    if isMet(candidate, request) then
      if candidate.target:sub(1, 1) == '?' then return pick(candidate.target, request) end
      return candidate.target
    end
  end
  return 'none'
end

-- The target of a request that has led to a list; `none` if no candidate matches.
core.register_fetches('pick', function(txn) return pick(txn:get_var('txn.t'), requestOf(txn)) end)

-- RFC 3986, section 5.2.4; encoded slashes and dots count as others, because members may decode them.
core.register_action('without_dots', { 'http-req' }, function(txn)
  local path = txn.f:path():gsub('%%2[fF]', '/')
  local kept = {}
  for segment in path:gmatch('/([^/]*)') do
    local name = segment:gsub('%%2[eE]', '.'):gsub(';.*', '')
    if name == '..' then table.remove(kept)
    elseif name ~= '.' then table.insert(kept, segment) end
  end
  local isFolder = path:gsub('%%2[eE]', '.'):gsub(';[^/]*$', ''):match('/%.%.?$') ~= nil
  local text = '/' .. table.concat(kept, '/')
  txn.http:req_set_path(isFolder and text:sub(-1) ~= '/' and text .. '/' or text)
end)

-- `sNAME=VALUE&aNAME=VALUE&rNAME`
local parsedChanges = keeper(function(text)
  local changes = {}
  for kind, words in text:gmatch('(%a)([^&]*)') do
    local name, value = words:match('^([^=]*)=?(.*)$')
    table.insert(changes, { kind = kind, name = decoded(name), value = decoded(value) })
  end
  return changes
end)

local function change(text, set, add, remove)
  if text == nil then return end
  for _, each in ipairs(parsedChanges(text)) do
    if each.kind == 's' then set(each.name, each.value)
    elseif each.kind == 'a' then add(each.name, each.value)
    else remove(each.name) end
  end
end

-- Those of the rule, then those of the backend.
core.register_action('request_headers', { 'http-req' }, function(txn)
  local http = txn.http
  for _, name in ipairs({ 'txn.hq', 'txn.sq' }) do
    change(txn:get_var(name),
      function(...) http:req_set_header(...) end,
      function(...) http:req_add_header(...) end,
      function(...) http:req_del_header(...) end)
  end
end)

core.register_action('response_headers', { 'http-res' }, function(txn)
  local http = txn.http
  for _, name in ipairs({ 'txn.hs', 'txn.ss' }) do
    change(txn:get_var(name),
      function(...) http:res_set_header(...) end,
      function(...) http:res_add_header(...) end,
      function(...) http:res_del_header(...) end)
  end
end)

-- `+CIDR` for an allowed range, `-CIDR` for a denied one.
local parsedClients = keeper(function(text)
  local clients = { allowed = {}, denied = {} }
  for sign, cidr in text:gmatch('([+-])(%S+)') do
    table.insert(sign == '+' and clients.allowed or clients.denied, core.parse_addr(cidr))
  end
  return clients
end)

local function isAmong(ranges, address)
  for _, range in ipairs(ranges) do
    if core.match_addr(range, address) then return true end
  end
  return false
end

-- True if a rule with these ranges refuses the client.
core.register_fetches('is_refused', function(txn)
  local clients = parsedClients(txn:get_var('txn.cl'))
  local address = core.parse_addr(txn.f:src())
  if isAmong(clients.denied, address) then return true end
  return #clients.allowed > 0 and not isAmong(clients.allowed, address)
end)

-- To verify a password takes a thread of HAProxy milliseconds: right ones are remembered for a while, by a digest, and a client
-- with many wrong ones must wait.
local REMEMBERED_S = 60
local MOST_WRONG = 5
local right, rightCount = {}, 0
local wrong, second = {}, 0

local function remember(key, untilS)
  if rightCount >= MAX_KEPT then right, rightCount = {}, 0 end
  right[key], rightCount = untilS, rightCount + 1
end

-- `yes`, `no`, `later`, or nothing if HAProxy does not have the list of users.
core.register_fetches('user', function(txn)
  local list, now, client = txn:get_var('txn.ul'), core.now().sec, txn.f:src()
  local given = txn.f:req_fhdr('authorization')
  -- Without the list of users there is an error.
  local function verify() return txn.f:http_auth(list) end
  if given == nil then return pcall(verify) and 'no' or '' end
  -- Of two, members could believe the other one.
  if txn.f:req_fhdr_cnt('authorization') ~= 1 then return 'no' end
  local key = txn.c:sha2(list .. ' ' .. given, 256)
  if (right[key] or 0) > now then return 'yes' end
  if second ~= now then wrong, second = {}, now end
  if (wrong[client] or 0) >= MOST_WRONG then return 'later' end
  local hasList, isRight = pcall(verify)
  if not hasList then return '' end
  if isRight == true or isRight == 1 then
    remember(key, now + REMEMBERED_S)
    return 'yes'
  end
  wrong[client] = (wrong[client] or 0) + 1
  return 'no'
end)

-- Copies of requests wait here for one of the loops that send them to HAProxy's own socket, each with the name of its pool.
-- A loop for each copy would leak memory in HAProxy 2.6 (https://github.com/haproxy/haproxy/commit/be58d6683).
local MOST_WAITING = 256
local LOOPS = 4
local IDLE_MS = 10
local COPIES_PER_COLLECTION = 100
local MOST_BODY_BYTES = 12288
local waiting, hasLoops = {}, false

local function send(copy)
  local client = core.httpclient()
  client[copy.method](client, {
    url = 'http://mirror' .. copy.uri,
    dst = 'unix@' .. os.getenv('HEADGATE_MIRRORS'),
    headers = copy.headers,
    body = copy.body,
  })
end

local function sendAll()
  local sent = 0
  while true do
    local copy = table.remove(waiting, 1)
    if copy == nil then
      core.msleep(IDLE_MS)
    else
      pcall(send, copy)
      sent = sent + 1
      if sent % COPIES_PER_COLLECTION == 0 then collectgarbage() end
    end
  end
end

-- `POOL NUMERATOR DENOMINATOR|...`
local parsedMirrors = keeper(function(text)
  local mirrors = {}
  for pool, numerator, denominator in text:gmatch('([^ |]+) (%d+) (%d+)') do
    table.insert(mirrors, { pool = pool, numerator = tonumber(numerator), denominator = tonumber(denominator) })
  end
  return mirrors
end)

-- Those of the request, without what belongs to its connection.
local function copiedHeaders(http, pool)
  local headers = {}
  for name, values in pairs(http:req_get_headers()) do
    local copied = {}
    for at = 0, #values do table.insert(copied, values[at]) end
    headers[name] = copied
  end
  for _, name in ipairs({ 'content-length', 'transfer-encoding', 'connection', 'upgrade' }) do headers[name] = nil end
  headers['x-headgate-pool'] = { pool }
  return headers
end

local COPIED_METHODS = { GET = 'get', HEAD = 'head', POST = 'post', PUT = 'put', DELETE = 'delete' }

-- A copy that has no room, or whose body is not there whole, is left out: it must not delay the request.
core.register_action('mirror', { 'http-req' }, function(txn)
  local method = COPIED_METHODS[txn.f:method()]
  local body = txn.f:req_body() or ''
  if method == nil or #body > MOST_BODY_BYTES or #body < (txn.f:req_body_size() or 0) then return end
  for _, mirror in ipairs(parsedMirrors(txn:get_var('txn.mi'))) do
    if math.random(mirror.denominator) <= mirror.numerator and #waiting < MOST_WAITING then
      local headers = copiedHeaders(txn.http, mirror.pool)
      table.insert(waiting, { method = method, uri = txn.f:pathq(), headers = headers, body = body })
    end
  end
  if hasLoops or #waiting == 0 then return end
  hasLoops = true
  for _ = 1, LOOPS do core.register_task(sendAll) end
end)
