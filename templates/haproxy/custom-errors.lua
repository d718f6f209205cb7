-- Default backends of Ingresses, as ingress-nginx has them: what they get of a request, and their answers in place of those of
-- members with some statuses. Without a usable answer the client gets the status alone: the author wants nothing of the member's
-- own answer to be seen. agent/haproxy/routes/README.md explains maps and variables.

local keeper, plain = headgate.keeper, headgate.plain

local SOCKET = 'unix@' .. (os.getenv('HEADGATE_AUTH') or '')
-- HAProxy's own socket answers earlier, whatever the service does.
local MOST_MS = 60000
-- HAProxy keeps this much room in its buffer for what rules add to a message.
local MOST_ADDED_BYTES = 8000
local MOST_VALUE_BYTES, MOST_URI_BYTES = 1000, 4000
local QUESTIONS_PER_COLLECTION = 200
-- RFC 9110, section 7.6.1, and what HAProxy says itself.
local OF_CONNECTIONS = {
  connection = true,
  ['keep-alive'] = true,
  ['proxy-connection'] = true,
  te = true,
  trailer = true,
  ['transfer-encoding'] = true,
  upgrade = true,
  ['content-length'] = true,
  ['x-headgate-page'] = true,
}
local NONE = 'none'
-- For the rules that answer with a page of the class.
local BY_CLASS = 'class'
-- What is passed on of the client's headers: no credentials, and with the others far fewer than HAProxy's own client has room for.
local PASSED = { 'accept', 'accept-language', 'accept-encoding', 'user-agent', 'host', 'x-forwarded-host', 'x-forwarded-proto' }

-- `CODES POOL NAMESPACE INGRESS SERVICE PORT`, see customErrorsText().
local parsed = keeper(function(text)
  local codes, pool, namespace, ingress, service, port = text:match('^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+)$')
  local row = {
    pool = pool,
    namespace = namespace,
    headers = {
      ['x-namespace'] = namespace,
      ['x-ingress-name'] = ingress,
      ['x-service-name'] = service,
      ['x-service-port'] = port,
    },
    codes = {},
  }
  for code in codes:gmatch('%d+') do row.codes[tonumber(code)], row.replaces = true, true end
  return row
end)

local function headerOf(txn, name)
  local value = txn.f:req_fhdr(name)
  return value and value:sub(1, MOST_VALUE_BYTES)
end

-- The headers of ingress-nginx, without the status.
local function headersOf(txn, row)
  local headers = {
    ['x-format'] = headerOf(txn, 'accept') or '',
    ['x-original-uri'] = txn.f:pathq():sub(1, MOST_URI_BYTES),
    ['x-request-id'] = headerOf(txn, 'x-request-id'),
  }
  for name, value in pairs(row.headers) do headers[name] = value end
  return headers
end

-- No member takes connections: the default backend gets the request itself.
local function giveRequest(txn, row)
  local headers = headersOf(txn, row)
  headers['x-code'] = '503'
  for name in pairs(txn.http:req_get_headers()) do
    if headers[plain(name)] and plain(name) ~= 'x-request-id' then txn.http:req_del_header(name) end
  end
  for name, value in pairs(headers) do txn.http:req_set_header(name, value) end
end

core.register_action('error_request', { 'http-req' }, function(txn)
  local row = parsed(txn:get_var('txn.custom_errors'))
  if txn:get_var('txn.target') == txn:get_var('txn.fallback') then return giveRequest(txn, row) end
  if not row.replaces then return end
  -- This request is a question itself: the default backend leads back here.
  if txn.f:req_fhdr('x-headgate-question') ~= nil then return txn:set_var('txn.error_request', NONE) end
  local headers, lines = headersOf(txn, row), {}
  for _, name in ipairs(PASSED) do headers[name] = headerOf(txn, name) end
  headers['x-forwarded-for'] = txn.f:src()
  for name, value in pairs(headers) do table.insert(lines, name .. ' ' .. value) end
  txn:set_var('txn.error_request', table.concat(lines, '\n'))
end)

local questions = 0

-- nil without one that can be used.
local function answerOf(txn, row, status)
  local request = txn:get_var('txn.error_request')
  if request == NONE or row.pool == NONE then return nil end
  local headers = { ['x-code'] = { tostring(status) }, ['x-headgate-pool'] = { row.pool } }
  headers['x-headgate-method'], headers['x-headgate-page'] = { 'GET' }, { '1' }
  for name, value in request:gmatch('(%S+) ([^\n]*)') do headers[name] = { value } end
  questions = questions + 1
  if questions % QUESTIONS_PER_COLLECTION == 0 then collectgarbage() end
  local question = headgate.opened('page ' .. row.namespace)
  if question == nil then return nil end
  local answer = headgate.sent({ url = 'http://page/', dst = SOCKET, headers = headers, timeout = MOST_MS })
  headgate.finish(question)
  local bytes, isAnswered = 0, false
  for name, values in pairs(answer and answer.headers or {}) do
    -- HAProxy's own answers do not have it.
    if name == 'x-headgate-page' then isAnswered = true end
    for at = 0, #values do bytes = bytes + #name + #values[at] + 4 end
  end
  local answered = answer and math.tointeger(answer.status) or 0
  if not isAnswered or answered < 200 or bytes > MOST_ADDED_BYTES then return nil end
  return answer
end

-- Rules that follow set headers as for each answer; the last one gives it to the client.
core.register_action('custom_error', { 'http-res' }, function(txn)
  local http, status = txn.http, math.tointeger(txn.f:status())
  local row = parsed(txn:get_var('txn.custom_errors'))
  if not row.codes[status] then return end
  local answer = answerOf(txn, row, status)
  for name in pairs(http:res_get_headers()) do
    if status ~= 401 or name ~= 'www-authenticate' then http:res_del_header(name) end
  end
  if answer == nil then
    if row.pool == NONE then txn:set_var('txn.page', BY_CLASS) end
    http:res_add_header('content-type', 'text/plain')
    http:res_add_header('cache-control', 'no-store')
    return txn:set_var('txn.error_body', 'Error ' .. status .. '\n')
  end
  http:res_set_status(math.tointeger(answer.status))
  for name, values in pairs(answer.headers) do
    if not OF_CONNECTIONS[name:lower()] then
      for at = 0, #values do http:res_add_header(name, values[at]) end
    end
  end
  txn:set_var('txn.error_body', answer.body or '')
end)

core.register_action('error_answer', { 'http-res' }, function(txn)
  local headers = {}
  for name, values in pairs(txn.http:res_get_headers()) do
    headers[name] = {}
    for at = 0, #values do table.insert(headers[name], values[at]) end
  end
  local status = math.tointeger(txn.f:status())
  txn:done(txn:reply({ status = status, headers = headers, body = txn:get_var('txn.error_body') }))
end)
