-- The parts of routes that HAProxy's rules cannot express: conditions on a request, changes of headers whose names are data,
-- ranges of client addresses, and copies of requests. What is parsed is kept by its id or text, which never changes its meaning.
-- Everything here is read from maps that only the agent writes; texts of authors are percent-encoded there.
-- agent/haproxy/routes/README.md explains maps, targets and variables.

local lists = Map.new(os.getenv('HEADGATE_ROUTES') .. '/lists', Map._str)
local expressions = Map.new(os.getenv('HEADGATE_ROUTES') .. '/expressions', Map._str)

-- Parsed texts; emptied when it is full, because routes come and go. `parse` may give a second value: how much room the first
-- one takes. Gives the value, and that room if it was parsed now.
local MAX_KEPT = 10000
local function keeper(parse, most)
  local kept, room = {}, 0
  return function(text)
    local value = kept[text]
    if value ~= nil then return value, 0 end
    local size
    value, size = parse(text)
    size = size or 1
    if room + size > (most or MAX_KEPT) then kept, room = {}, 0 end
    kept[text], room = value, room + size
    return value, size
  end
end

local function decoded(text)
  return (text:gsub('%%(%x%x)', function(digits) return string.char(tonumber(digits, 16)) end))
end

-- Many members take names for the same that differ in other characters than letters and digits.
local function plain(name) return (name:lower():gsub('[^a-z0-9]', '-')) end

-- Without its names, a client could have the member's next proxy drop headers that HAProxy has set.
local function cleanConnection(txn)
  if (txn.f:req_fhdr_cnt('connection')) == 0 then return end
  local isUpgrade = txn.f:req_fhdr('upgrade') ~= nil
  txn.http:req_del_header('connection')
  if isUpgrade then txn.http:req_set_header('connection', 'upgrade') end
end

-- The author decides how many conditions a request meets, and the client how long its texts are. What they cost is counted in
-- steps, some 100 ns each, and a request with too many is answered with 500: no thread is held longer than some milliseconds,
-- and no wider route serves a request whose conditions were not all tried.
local MOST_STEPS = 100000
local STEPS_PER_CONDITION = 10
-- Characters of a list that are parsed in one step.
local CHARACTERS_PER_STEP = 4

local function take(request, steps)
  request.steps = request.steps + steps
  return request.steps <= MOST_STEPS
end

-- HAProxy's own client has room for 101 header fields, with its own, and 2.6 ends with a fault if it gets more.
local MOST_SENT_HEADERS = 90
local function areFew(headers)
  local count = 0
  for _, values in pairs(headers) do count = count + #values end
  return count <= MOST_SENT_HEADERS
end

-- For groups.lua, external-auth.lua and jwt.lua.
headgate = {
  decoded = decoded, keeper = keeper, take = take, plain = plain, cleanConnection = cleanConnection, areFew = areFew,
}

-- A table with the next state for each class of bytes, as agent/base/expression/expression.ts writes it. What a request needs
-- of it is parsed then: a state when a text first gets there. Room is counted in characters.
local MAX_CHARACTERS = 500000
local MAX_LIST_CHARACTERS = 8000000
local parsedExpression = keeper(function(id)
  local text = expressions:lookup(id)
  if text == nil then return nil end
  local classes, width, code = {}, 0, 0
  for run, class in text:match('^[^|]*'):gmatch('(%d+)%.(%d+)') do
    class = tonumber(class)
    for _ = 1, tonumber(run) do classes[code], code = class, code + 1 end
    width = math.max(width, class + 1)
  end
  local states = {}
  for state in text:gmatch('|([^|]*)') do table.insert(states, state) end
  return { classes = classes, width = width, states = states, rows = {} }, #text
end, MAX_CHARACTERS)

-- Class to next state; false if no text that continues like this matches.
local function rowOf(expression, state)
  local ending, usual, others = expression.states[state + 1]:match('^([+-])(%d*)(.*)$')
  local row = { accepts = ending == '+' }
  row.isSink = row.accepts and usual == tostring(state) and others == ''
  for class = 0, expression.width - 1 do row[class] = tonumber(usual) or false end
  for class, to in others:gmatch('(%d+)%.(%d*)') do row[tonumber(class)] = tonumber(to) or false end
  expression.rows[state] = row
  return row
end

-- Whether the text of these bytes matches, and how many of them were looked at.
local function walked(expression, bytes)
  local classes, rows = expression.classes, expression.rows
  local row = rows[0] or rowOf(expression, 0)
  for at = 1, #bytes do
    local state = row[classes[bytes[at]]]
    if not state then return false, at end
    row = rows[state] or rowOf(expression, state)
    if row.isSink then return true, at end
  end
  return row.accepts, #bytes
end

-- nil if it is not known.
local function matches(id, text, request)
  local expression, parsed = parsedExpression(id)
  if expression == nil or not take(request, parsed) then return nil end
  local bytes = request.bytes[text]
  if bytes == nil then
    bytes = { text:byte(1, -1) }
    request.bytes[text] = bytes
    take(request, #bytes // CHARACTERS_PER_STEP)
  end
  local isMatch, steps = walked(expression, bytes)
  if not take(request, steps) then return nil end
  return isMatch
end

-- Each gives nil if it is not known whether it is met.
local conditions = {
  m = function(method) return function(request) return request.method() == method end end,
  h = function(name, value)
    return function(request)
      for _, each in ipairs(request.headers()[name] or {}) do
        if each == value then return true end
      end
      return false
    end
  end,
  q = function(name, value) return function(request) return request.query()[name] == value end end,
  P = function(id) return function(request) return matches(id, request.path(), request) end end,
  H = function(name, id)
    return function(request)
      for _, each in ipairs(request.headers()[name] or {}) do
        local isMatch = matches(id, each, request)
        if isMatch ~= false then return isMatch end
      end
      return false
    end
  end,
  Q = function(name, id)
    return function(request)
      local value = request.query()[name]
      return value ~= nil and matches(id, value, request)
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
  local candidates, all = {}, lists:lookup(id) or ''
  for text in all:gmatch('[^|]+') do
    local candidate = { target = text:match('^[^&]+'), conditions = {} }
    for kind, words in text:gmatch('&(%a)([^&]*)') do
      local name, value = words:match('^([^=]*)=?(.*)$')
      table.insert(candidate.conditions, conditions[kind](decoded(name), decoded(value)))
    end
    table.insert(candidates, candidate)
  end
  return candidates, #all
end, MAX_LIST_CHARACTERS)

-- The values of each header by its name, which is in lower case.
local function parsedHeaders(text)
  local headers = {}
  for name, value in text:gmatch('([^:\r\n]+): ([^\r\n]*)') do
    local values = headers[name]
    if values == nil then headers[name] = { value } else table.insert(values, value) end
  end
  return headers
end

-- The one spelling of a path, as agent/base/one-spelling.ts has it. By the three characters of an encoded character, in lower and
-- upper case: what becomes of it, and what expressions see of that.
local spellings, encodings, printed = {}, {}, {}
for code = 0, 255 do
  local upper = string.format('%%%02X', code)
  local character = string.char(code)
  local plain = character:match("^[A-Za-z0-9._~!$&'()*+,=:@-]$") or upper
  encodings[character] = upper
  if character:find('^[ "<>[%]^`{|}]$') then printed[upper] = character end
  for _, high in ipairs({ upper:sub(2, 2), upper:sub(2, 2):lower() }) do
    for _, low in ipairs({ upper:sub(3, 3), upper:sub(3, 3):lower() }) do spellings['%' .. high .. low] = plain end
  end
end

local function encodedPath(path) return (path:gsub("[^A-Za-z0-9._~!$&'()*+,;=:@/%%-]", encodings)) end

local function oneSpelling(path)
  local spelled = path:gsub('%%(%x?%x?)', function(digits)
    if #digits == 2 then return spellings['%' .. digits] end
    return '%25' .. digits
  end)
  return encodedPath(spelled)
end

local function textOfPath(txn) return ((txn:get_var('txn.path') or ''):gsub('%%%x%x', printed)) end

headgate.encodedPath, headgate.textOfPath = encodedPath, textOfPath

-- What lists ask for is read once.
local function requestOf(txn)
  local function once(read)
    local value
    return function()
      if value == nil then value = read() end
      return value
    end
  end
  return {
    steps = txn:get_var('txn.steps') or 0,
    -- Of each text that expressions look at.
    bytes = {},
    method = once(function() return txn.f:method() end),
    path = once(function() return textOfPath(txn) end),
    headers = once(function() return parsedHeaders(txn.f:req_hdrs()) end),
    query = once(function() return parsedQuery(txn.f:query() or '') end),
  }
end

-- Nothing if it is not known.
local function isMet(candidate, request)
  for _, condition in ipairs(candidate.conditions) do
    if not take(request, STEPS_PER_CONDITION) then return nil end
    local isThisMet = condition(request)
    if not isThisMet then return isThisMet end
  end
  return true
end

local function pick(id, request)
  local candidates, parsed = parsedList(id)
  take(request, parsed // CHARACTERS_PER_STEP)
  for _, candidate in ipairs(candidates) do
    local isThisMet = isMet(candidate, request)
    if isThisMet == nil then return 'e500' end
    if isThisMet then
      if candidate.target:sub(1, 1) ~= '?' then return candidate.target end
      local picked = pick(candidate.target, request)
      if picked ~= 'none' then return picked end
    end
  end
  return 'none'
end

-- The target of a request that has led to a list; `none` if no candidate matches. A request that continues with a wider hostname
-- continues to count.
core.register_fetches('pick', function(txn)
  local request = requestOf(txn)
  local target = pick(txn:get_var('txn.target'), request)
  txn:set_var('txn.steps', request.steps)
  return target
end)

-- True if the subject of the client's certificate is as the rule wants it; a client without one has none.
core.register_fetches('has_name', function(txn)
  local subject = txn:get_var('txn.subject')
  if subject == nil then return false end
  local request = requestOf(txn)
  local isNamed = matches(txn:get_var('txn.certificate_name'), subject, request)
  txn:set_var('txn.steps', request.steps)
  return isNamed == true
end)

core.register_fetches('one_spelling', function(txn) return oneSpelling(txn.f:path()) end)

-- Of a redirect `STATUS|location|URL`: the URL with what it has of the request.
core.register_fetches('location', function(txn)
  local query = txn.f:query() or ''
  local values = {
    args = query,
    is_args = query == '' and '' or '?',
    query_string = query,
    host = txn:get_var('txn.host') or '',
    request_uri = txn.f:pathq(),
    scheme = txn:get_var('txn.scheme'),
    uri = txn:get_var('txn.path'),
  }
  return (txn:get_var('txn.redirect'):match('^[^|]*|[^|]*|(.*)$'):gsub('%$([a-z_]+)', values))
end)

-- RFC 3986, section 5.2.4; encoded slashes and dots count as others, because members may decode them. Looks at each character
-- once: the path is the client's, and may have 15 KB.
core.register_action('without_dots', { 'http-req' }, function(txn)
  local path = txn.f:path():gsub('%%2[fF]', '/')
  local kept, name = {}, ''
  for segment in path:gmatch('/([^/]*)') do
    name = segment:gsub('%%2[eE]', '.'):match('^[^;]*')
    if name == '..' then table.remove(kept)
    elseif name ~= '.' then table.insert(kept, segment) end
  end
  local isFolder = name == '.' or name == '..'
  local text = '/' .. table.concat(kept, '/')
  txn.http:req_set_path(isFolder and text:sub(-1) ~= '/' and text .. '/' or text)
end)

-- `sNAME=VALUE&aNAME=VALUE&rNAME&cNAME`
local parsedChanges = keeper(function(text)
  local changes = {}
  for kind, words in text:gmatch('(%a)([^&]*)') do
    local name, value = words:match('^([^=]*)=?(.*)$')
    table.insert(changes, { kind = kind, name = decoded(name), value = decoded(value) })
  end
  return changes
end)

-- The client's certificate as nginx gives it, or nothing.
local function certificateOf(txn)
  local der = txn.f:ssl_c_der()
  if der == nil or der == '' then return nil end
  local lines = txn.c:base64(der):gsub(('.'):rep(64), '%0\n'):gsub('\n$', '')
  local text = '-----BEGIN CERTIFICATE-----\n' .. lines .. '\n-----END CERTIFICATE-----\n'
  return (text:gsub('[^A-Za-z0-9._~-]', function(character) return string.format('%%%02X', character:byte()) end))
end

local function change(text, set, add, remove, certificate)
  if text == nil then return end
  for _, each in ipairs(parsedChanges(text)) do
    if each.kind == 's' then set(each.name, each.value)
    elseif each.kind == 'a' then add(each.name, each.value)
    else
      remove(each.name)
      local value = each.kind == 'c' and certificate()
      if value then set(each.name, value) end
    end
  end
end

-- Those of the rule, then those of the backend.
core.register_action('request_headers', { 'http-req' }, function(txn)
  local http = txn.http
  for _, name in ipairs({ 'txn.request_headers', 'txn.backend_request_headers' }) do
    change(txn:get_var(name),
      function(...) http:req_set_header(...) end,
      function(...) http:req_add_header(...) end,
      function(...) http:req_del_header(...) end,
      function() return certificateOf(txn) end)
  end
end)

core.register_action('response_headers', { 'http-res' }, function(txn)
  local http = txn.http
  for _, name in ipairs({ 'txn.response_headers', 'txn.backend_response_headers' }) do
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
  local clients = parsedClients(txn:get_var('txn.client_ranges'))
  local address = core.parse_addr(txn.f:src())
  if isAmong(clients.denied, address) then return true end
  return #clients.allowed > 0 and not isAmong(clients.allowed, address)
end)

-- To verify a password takes a thread of HAProxy milliseconds: right ones are remembered for a while, by a digest, and who has many
-- wrong ones in a second must wait: a client, all behind one connection's address, because proxies may be trusted with any client's
-- address, and all that try one user.
local REMEMBERED_S = 60
local MOST_WRONG = { client = 5, peer = 10, user = 10 }
local right, rightCount = {}, 0
local wrong, second = {}, 0

local function remember(key, untilS)
  if rightCount >= MAX_KEPT then right, rightCount = {}, 0 end
  right[key], rightCount = untilS, rightCount + 1
end

-- `KIND KEY` for each that a wrong password counts against.
local function guessers(txn, list, given)
  local client = txn.f:src()
  local peer = txn:get_var('txn.peer') or client
  local user = (txn.c:b64dec(given:match('^%S+%s+(%S+)') or '') or ''):match('^[^:]*')
  return { { 'client', client }, { 'peer', peer }, { 'user', list .. ' ' .. user } }
end

-- `yes`, `no`, `later`, or nothing if HAProxy does not have the list of users.
core.register_fetches('user', function(txn)
  local list, now = txn:get_var('txn.user_list'), core.now().sec
  local given = txn.f:req_fhdr('authorization')
  -- Without the list of users there is an error.
  local function verify() return txn.f:http_auth(list) end
  if given == nil then return pcall(verify) and 'no' or '' end
  -- Of two, members could believe the other one.
  if txn.f:req_fhdr_cnt('authorization') ~= 1 then return 'no' end
  local key = txn.c:sha2(list .. ' ' .. given, 256)
  if (right[key] or 0) > now then return 'yes' end
  if second ~= now then wrong, second = {}, now end
  local counted = guessers(txn, list, given)
  for _, each in ipairs(counted) do
    local kind, key = each[1], table.concat(each, ' ')
    if (wrong[key] or 0) >= MOST_WRONG[kind] then return 'later' end
  end
  local hasList, isRight = pcall(verify)
  if not hasList then return '' end
  if isRight == true or isRight == 1 then
    remember(key, now + REMEMBERED_S)
    return 'yes'
  end
  for _, each in ipairs(counted) do
    local key = table.concat(each, ' ')
    wrong[key] = (wrong[key] or 0) + 1
  end
  return 'no'
end)

-- The pool's own name of the cookie by which a client keeps its member, with what the client has under the route's.
core.register_action('session_cookie', { 'http-req' }, function(txn)
  local name = (txn:get_var('txn.cookie') or ''):match('^[^|]*')
  local value = name ~= 'HEADGATE' and txn.f:req_cook(name)
  if value and value ~= '' then txn.http:req_add_header('cookie', 'HEADGATE=' .. value) end
end)

-- Values of nginx's variables; of those with a name of the author's by what is before it.
local variables = {
  remote_addr = function(txn) return txn.f:src() end,
  binary_remote_addr = function(txn) return txn.f:src() end,
  request_uri = function(txn) return txn.f:pathq() end,
  uri = function(txn) return txn:get_var('txn.path') end,
  host = function(txn) return txn:get_var('txn.host') end,
}
local named = {
  http = function(txn, name) return txn.f:req_fhdr((name:gsub('_', '-'))) end,
  arg = function(txn, name) return txn.f:url_param(name) end,
  cookie = function(txn, name) return txn.f:req_cook(name) end,
}

-- By which a pool chooses a member.
core.register_fetches('hash_key', function(txn)
  return (txn:get_var('txn.hash_by'):gsub('%$([A-Za-z0-9_]+)', function(variable)
    local kind, name = variable:match('^(%l+)_(.+)$')
    if variables[variable] then return variables[variable](txn) or '' end
    return named[kind] and named[kind](txn, name) or ''
  end))
end)

-- Copies of requests wait here, by pool, for one of the loops that send them to HAProxy's own socket, each with the name of its
-- pool. A pool that does not answer holds a few copies and loops, and so do all pools of a namespace together: the rest is for others.
-- A loop for each copy would leak memory in HAProxy 2.6 (https://github.com/haproxy/haproxy/commit/be58d6683).
local MOST_WAITING, MOST_WAITING_OF_NAMESPACE, MOST_WAITING_OF_POOL = 1024, 512, 64
local MOST_LOOPS, MOST_SENT_OF_NAMESPACE, MOST_SENT_OF_POOL = 64, 32, 4
-- The first loops look often; the others exist because copies of some pool take long.
local QUICK_LOOPS, QUICK_IDLE_MS, IDLE_MS = 4, 10, 100
local COPIES_PER_COLLECTION = 100
local MOST_BODY_BYTES = 12288
local queues, namespaces = {}, {}
local everything = { waiting = 0, sending = 0 }
local loops, idle = 0, 0

local function send(copy)
  local client = core.httpclient()
  client[copy.method](client, {
    url = 'http://mirror' .. copy.uri,
    dst = 'unix@' .. os.getenv('HEADGATE_MIRRORS'),
    headers = copy.headers,
    body = copy.body,
  })
end

local function count(queue, key, number)
  for _, counts in ipairs({ queue, queue.namespace, everything }) do counts[key] = counts[key] + number end
end

-- Names of pools begin with `pool:NAMESPACE:`.
local function queueOf(pool)
  if queues[pool] == nil then
    local name = pool:match('^[^:]*:([^:]*)') or ''
    local namespace = namespaces[name] or { name = name, waiting = 0, sending = 0 }
    namespaces[name] = namespace
    queues[pool] = { pool = pool, namespace = namespace, copies = {}, waiting = 0, sending = 0 }
  end
  return queues[pool]
end

local function forgetIfEmpty(queue)
  local namespace = queue.namespace
  if queue.waiting + queue.sending == 0 then queues[queue.pool] = nil end
  if namespace.waiting + namespace.sending == 0 then namespaces[namespace.name] = nil end
end

local function hasRoom(queue)
  return queue.waiting < MOST_WAITING_OF_POOL
    and queue.namespace.waiting < MOST_WAITING_OF_NAMESPACE
    and everything.waiting < MOST_WAITING
end

local function queueToSend()
  for _, queue in pairs(queues) do
    local namespace = queue.namespace
    if queue.waiting > 0 and queue.sending < MOST_SENT_OF_POOL and namespace.sending < MOST_SENT_OF_NAMESPACE then
      return queue
    end
  end
end

local function sendAll()
  loops = loops + 1
  local idleMs, sent = loops <= QUICK_LOOPS and QUICK_IDLE_MS or IDLE_MS, 0
  while true do
    local queue = queueToSend()
    if queue == nil then
      idle = idle + 1
      core.msleep(idleMs)
      idle = idle - 1
    else
      local copy = table.remove(queue.copies, 1)
      count(queue, 'waiting', -1)
      count(queue, 'sending', 1)
      pcall(send, copy)
      count(queue, 'sending', -1)
      forgetIfEmpty(queue)
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
  for _, name in ipairs({ 'content-length', 'transfer-encoding', 'connection', 'upgrade', 'expect' }) do headers[name] = nil end
  headers['x-headgate-pool'] = { pool }
  return headers
end

-- Of a body whose length the client has named, and that it sends without being asked to: a stream has neither.
local BODY_STEP_MS, MOST_BODY_STEPS = 5, 200
local function stepsForBody(f)
  local length = tonumber(f:req_hdr('content-length') or '')
  local isStream = (f:req_hdr('content-type') or ''):lower():find('application/grpc', 1, true) == 1
  if length == nil or length > MOST_BODY_BYTES or isStream or f:req_fhdr('expect') ~= nil then return 0 end
  return MOST_BODY_STEPS
end

local function isWhole(f)
  local hasEnd = f:internal_htx_has_eom()
  return hasEnd == true or hasEnd == 1
end

-- nil if it is not here whole, or too long. HAProxy's own `wait-for-body` answers 408 to a body that comes slowly.
local function wholeBody(f)
  for _ = 1, stepsForBody(f) do
    if isWhole(f) then break end
    core.msleep(BODY_STEP_MS)
  end
  local body = f:req_body() or ''
  return isWhole(f) and #body <= MOST_BODY_BYTES and body or nil
end

local COPIED_METHODS = { GET = 'get', HEAD = 'head', POST = 'post', PUT = 'put', DELETE = 'delete' }

-- A copy that has no room or too many headers, or whose body is not there whole, is left out: the request goes on without it.
core.register_action('mirror', { 'http-req' }, function(txn)
  local method = COPIED_METHODS[txn.f:method()]
  local body = method and wholeBody(txn.f)
  if body == nil then return end
  for _, mirror in ipairs(parsedMirrors(txn:get_var('txn.mirrors'))) do
    local queue, headers = queueOf(mirror.pool), copiedHeaders(txn.http, mirror.pool)
    if math.random(mirror.denominator) <= mirror.numerator and hasRoom(queue) and areFew(headers) then
      table.insert(queue.copies, { method = method, uri = txn.f:pathq(), headers = headers, body = body })
      count(queue, 'waiting', 1)
      if idle == 0 and loops < MOST_LOOPS then core.register_task(sendAll) end
    end
    forgetIfEmpty(queue)
  end
end)
