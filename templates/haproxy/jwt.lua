-- Verifies JSON Web Tokens (RFC 7519) of routes: finds the token and its key, and reads its claims after HAProxy has verified the signature.
-- Loaded if a route wants tokens. A request is let in only if `txn.token_answer` is `yes`, which one line here sets. The algorithm is
-- that of the key, never the token's choice. Members get claims in headers, and never what a client sends under these names.

local keeper, decoded, plain, cleanConnection = headgate.keeper, headgate.decoded, headgate.plain, headgate.cleanConnection

local MOST_TOKEN_BYTES = 8192
local MOST_HEADER_BYTES = 2048
-- HAProxy keeps this much room in its buffer for what rules add to a message.
local MOST_ADDED_BYTES = 8000
local MOST_DEPTH = 16
-- Characters of texts whose values are kept, in each thread. Few: to keep a value that does not come again costs more than to parse it.
local MOST_CHARACTERS_OF_NAMES, MOST_CHARACTERS_OF_HEADERS, MOST_CHARACTERS_OF_CLAIMS = 10000, 4000, 20000

local MISSING, WRONG = 'Bearer', 'Bearer error="invalid_token"'

-- JSON (RFC 8259): texts are themselves, objects have `names`, lists `items`, numbers and literals the `text` that the token has.
local parseValue
local NULL = { kind = 'null' }

local ESCAPES = { ['"'] = '"', ['\\'] = '\\', ['/'] = '/', b = '\b', f = '\f', n = '\n', r = '\r', t = '\t' }

-- nil if it is not a text, else the text and the place behind it.
local function parseText(text, at)
  if text:byte(at) ~= 34 then return nil end
  local close = text:find('["\\%c]', at + 1)
  if close == nil then return nil end
  if text:byte(close) == 34 then return text:sub(at + 1, close - 1), close + 1 end
  local parts, from = {}, at + 1
  while true do
    local stop = text:find('["\\%c]', from)
    if stop == nil then return nil end
    parts[#parts + 1] = text:sub(from, stop - 1)
    local code = text:byte(stop)
    if code == 34 then return table.concat(parts), stop + 1 end
    if code ~= 92 then return nil end
    local letter = text:sub(stop + 1, stop + 1)
    if letter == 'u' then
      local digits = text:match('^%x%x%x%x', stop + 2)
      if digits == nil then return nil end
      local point = tonumber(digits, 16)
      from = stop + 6
      if point >= 0xD800 and point <= 0xDBFF then
        local low = text:match('^\\u(%x%x%x%x)', from)
        local second = low and tonumber(low, 16)
        if second == nil or second < 0xDC00 or second > 0xDFFF then return nil end
        point, from = 0x10000 + (point - 0xD800) * 0x400 + second - 0xDC00, from + 6
      elseif point >= 0xDC00 and point <= 0xDFFF then
        return nil
      end
      parts[#parts + 1] = utf8.char(point)
    else
      if ESCAPES[letter] == nil then return nil end
      parts[#parts + 1] = ESCAPES[letter]
      from = stop + 2
    end
  end
end

local function blanks(text, at)
  local code = text:byte(at)
  if code ~= nil and code > 32 then return at end
  return text:find('[^ \t\r\n]', at) or #text + 1
end

local function parseObject(text, at, depth)
  local names = {}
  at = blanks(text, at + 1)
  if text:byte(at) == 125 then return { kind = 'object', names = names }, at + 1 end
  while true do
    -- Most members are texts without escapes.
    local name, given, behind = text:match('^"([^"\\%c]*)":"([^"\\%c]*)"()', at)
    local value
    if name ~= nil then
      value, at = given, behind
    else
      name, at = parseText(text, at)
      if name == nil then return nil end
      at = blanks(text, at)
      if text:byte(at) ~= 58 then return nil end
      value, at = parseValue(text, blanks(text, at + 1), depth)
      if value == nil then return nil end
    end
    -- Of two claims of a name, members could read the other one.
    if names[name] ~= nil then return nil end
    names[name] = value
    at = blanks(text, at)
    local code = text:byte(at)
    if code == 125 then return { kind = 'object', names = names }, at + 1 end
    if code ~= 44 then return nil end
    at = blanks(text, at + 1)
  end
end

local function parseList(text, at, depth)
  local items = {}
  at = blanks(text, at + 1)
  if text:byte(at) == 93 then return { kind = 'list', items = items }, at + 1 end
  while true do
    local value
    value, at = parseValue(text, at, depth)
    if value == nil then return nil end
    items[#items + 1] = value
    at = blanks(text, at)
    local code = text:byte(at)
    if code == 93 then return { kind = 'list', items = items }, at + 1 end
    if code ~= 44 then return nil end
    at = blanks(text, at + 1)
  end
end

local function parseNumber(text, at)
  local whole, behind = text:match('^(%-?%d+)()', at)
  if whole == nil or whole:find('^%-?0%d') then return nil end
  if not text:find('^[.eE]', behind) then return { kind = 'number', text = whole }, behind end
  local fraction = text:match('^%.%d+', behind) or ''
  local exponent = text:match('^[eE][+-]?%d+', behind + #fraction) or ''
  local number = whole .. fraction .. exponent
  return { kind = 'number', text = number }, at + #number
end

-- nil if it is not JSON, else the value and the place behind it.
function parseValue(text, at, depth)
  if depth > MOST_DEPTH then return nil end
  local code = text:byte(at)
  if code == 34 then return parseText(text, at) end
  if code == 123 then return parseObject(text, at, depth + 1) end
  if code == 91 then return parseList(text, at, depth + 1) end
  local word = text:match('^%l+', at)
  if word == nil then return parseNumber(text, at) end
  if word == 'true' or word == 'false' then return { kind = 'literal', text = word }, at + #word end
  if word == 'null' then return NULL, at + #word end
  return nil
end

-- The members of an object; false if the text is none.
local function parsedObject(text)
  -- Lua takes half a surrogate pair for a character.
  if utf8.len(text) == nil or text:find('\xED[\xA0-\xBF]') then return false, #text end
  local value, behind = parseValue(text, blanks(text, 1), 0)
  if value == nil or value.names == nil or blanks(text, behind) <= #text then return false, #text end
  return value.names, #text
end

-- Also of tokens that nobody has signed, so that it must not push the claims out.
local parsedHeader = keeper(parsedObject, MOST_CHARACTERS_OF_HEADERS)
local parsedClaims = keeper(parsedObject, MOST_CHARACTERS_OF_CLAIMS)

local function listOf(text)
  local list = {}
  for word in text:gmatch('[^,]+') do list[#list + 1] = decoded(word) end
  return list
end

local function setOf(text)
  local set, count = {}, 0
  for _, word in ipairs(listOf(text)) do set[word], count = true, count + 1 end
  return { has = set, isEmpty = count == 0 }
end

-- The steps of a JSON pointer (RFC 6901), or the name of a claim.
local function stepsOf(claim)
  if claim:sub(1, 1) ~= '/' then return { claim } end
  local steps = {}
  for step in claim:gmatch('/([^/]*)') do steps[#steps + 1] = (step:gsub('~1', '/'):gsub('~0', '~')) end
  return steps
end

-- See jwtText().
local parsed = keeper(function(text)
  local wanted = { required = {}, headers = {} }
  for letter, value in ('&' .. text:match('^[^|]*|(.*)$')):gmatch('&(%a)([^&]*)') do
    local name, rest = value:match('^([^=]*)=(.*)$')
    if letter == 'i' then wanted.issuer = decoded(value)
    elseif letter == 'u' then wanted.audiences = setOf(value)
    elseif letter == 'f' then wanted.place, wanted.name = value:match('^(%a+):(.*)$')
    elseif letter == 'x' then wanted.isRemoved = true
    elseif letter == 'l' then wanted.leeway = tonumber(value)
    elseif letter == 'r' then
      local claim = decoded(name)
      table.insert(wanted.required, { steps = stepsOf(claim), values = setOf(rest), isScope = claim == 'scope' })
    elseif letter == 'h' then
      local header = decoded(name)
      table.insert(wanted.headers, { name = header, plain = plain(header), steps = stepsOf(decoded(rest)) })
    end
  end
  wanted.name = wanted.name and decoded(wanted.name)
  return wanted
end)

-- `KID|ALGORITHM|ID;…`: by both, because a token names both.
local parsedKeys = keeper(function(text)
  local keys, count, only = {}, 0, nil
  for kid, algorithm, id in text:gmatch('([^|;]*)|(%w+)|(%w+)') do
    only = { algorithm = algorithm, id = id }
    keys[decoded(kid)], count = only, count + 1
  end
  return { byKid = keys, only = count == 1 and only or nil }
end)

local function nameOfCookie(text) return text:match('^%s*([^=]-)%s*=') end

-- The values of a cookie, of all headers with cookies.
local function cookies(txn, name)
  local values = {}
  local headers = txn.http:req_get_headers()['cookie'] or {}
  for at = 0, #headers do
    for each in (headers[at] or ''):gmatch('[^;]+') do
      if nameOfCookie(each) == name then values[#values + 1] = each:match('=%s*"?(.-)"?%s*$') end
    end
  end
  return values
end

local function removeCookie(txn, name)
  local headers, left = txn.http:req_get_headers()['cookie'] or {}, {}
  for at = 0, #headers do
    for each in (headers[at] or ''):gmatch('[^;]+') do
      if nameOfCookie(each) ~= name then left[#left + 1] = each:match('^%s*(.-)%s*$') end
    end
  end
  if #left == 0 then txn.http:req_del_header('cookie')
  else txn.http:req_set_header('cookie', table.concat(left, '; ')) end
end

-- The names of all headers, each as often as it is there, are a text: a table of headers takes three times as long.
local function namesOfHeaders(txn) return (txn.f:req_hdr_names(',') or ''):gmatch('[^,]+') end

local plainName = keeper(function(name) return plain(name), #name end, MOST_CHARACTERS_OF_NAMES)

-- Members could take one of the others for it.
local function isAlone(txn, name)
  local own, count = plain(name), 0
  for each in namesOfHeaders(txn) do
    if plainName(each) == own then count = count + 1 end
  end
  return count == 1
end

-- '' without one, nil if there are several, of which members could believe another one.
local function tokenOf(txn, wanted)
  if wanted.place == 'cookie' then
    local values = cookies(txn, wanted.name)
    if #values > 1 then return nil end
    return values[1] or ''
  end
  local count = txn.f:req_fhdr_cnt(wanted.name)
  if count == 0 then return '' end
  if count > 1 or wanted.place == 'header' and not isAlone(txn, wanted.name) then return nil end
  local value = txn.f:req_fhdr(wanted.name)
  if wanted.place == 'header' then return value end
  local scheme, token = value:match('^(%a+) +(%S+)%s*$')
  return scheme ~= nil and scheme:lower() == 'bearer' and token or ''
end

-- The key that may have signed it; nil if there is none.
local function keyFor(txn, token, keys)
  if #token > MOST_TOKEN_BYTES then return nil end
  local header = token:match('^([%w_-]+)%.[%w_-]+%.[%w_-]+$')
  if header == nil or #header > MOST_HEADER_BYTES then return nil end
  local names = parsedHeader(txn.c:ub64dec(header) or '')
  -- What a token says is critical is not known here (RFC 7515, section 4.1.11).
  if not names or names.crit ~= nil or names.kid ~= nil and type(names.kid) ~= 'string' then return nil end
  local key = keys.byKid[names.kid or ''] or keys.only
  if key == nil or key.algorithm ~= names.alg then return nil end
  return key
end

core.register_action('token', { 'http-req' }, function(txn)
  txn:set_var('txn.token_answer', 'no')
  txn:set_var('txn.challenge', WRONG)
  local token = tokenOf(txn, parsed(txn:get_var('txn.jwt')))
  if token == nil then return end
  if token == '' then
    txn:set_var('txn.challenge', MISSING)
    return
  end
  local key = keyFor(txn, token, parsedKeys(txn:get_var('txn.keys')))
  if key == nil then return end
  txn:set_var('txn.token', token)
  txn:set_var('txn.token_key', key.id)
end)

-- nil if there is none.
local function claimAt(claims, steps)
  local value = claims[steps[1]]
  for at = 2, #steps do
    if type(value) ~= 'table' then return nil end
    if value.names ~= nil then value = value.names[steps[at]]
    elseif value.items ~= nil and steps[at]:find('^%d+$') then value = value.items[tonumber(steps[at]) + 1]
    else return nil end
  end
  if value == NULL then return nil end
  return value
end

-- nil for what has several.
local function textOf(value)
  if type(value) == 'string' then return value end
  return value.text
end

local function hasOneOf(value, wanted, isScope)
  if value == nil then return false end
  if wanted.isEmpty then return true end
  if type(value) == 'table' and value.items ~= nil then
    for _, item in ipairs(value.items) do
      local text = textOf(item)
      if text ~= nil and wanted.has[text] then return true end
    end
    return false
  end
  local text = textOf(value)
  if text == nil then return false end
  if wanted.has[text] then return true end
  -- RFC 8693, section 4.2.
  if isScope and type(value) == 'string' then
    for word in value:gmatch('%S+') do
      if wanted.has[word] then return true end
    end
  end
  return false
end

local function timeOf(value)
  if type(value) ~= 'table' or value.kind ~= 'number' then return nil end
  return tonumber(value.text)
end

local function isMeantForUs(claims, wanted)
  local now = core.now().sec
  local ends = timeOf(claims.exp)
  -- A token that never ends could not be taken back.
  if ends == nil or now >= ends + wanted.leeway then return false end
  if claims.nbf ~= nil then
    local begins = timeOf(claims.nbf)
    if begins == nil or now + wanted.leeway < begins then return false end
  end
  if claims.iss ~= wanted.issuer then return false end
  if not wanted.audiences.isEmpty and not hasOneOf(claims.aud, wanted.audiences) then return false end
  for _, each in ipairs(wanted.required) do
    if not hasOneOf(claimAt(claims, each.steps), each.values, each.isScope) then return false end
  end
  return true
end

-- Members leave out blanks at the ends.
local function isFit(text, unfit) return text ~= nil and not text:find(unfit) and not text:find('^ ') and not text:find(' $') end

-- nil if a header cannot have the value: it could be read as another one.
local function headerText(value)
  if type(value) ~= 'table' or value.items == nil then
    local text = textOf(value)
    return isFit(text, '%c') and text or nil
  end
  local texts = {}
  for at, item in ipairs(value.items) do
    texts[at] = textOf(item)
    if not isFit(texts[at], '[%c,]') then return nil end
  end
  return table.concat(texts, ',')
end

-- False if members cannot get them all.
local function giveToMember(txn, claims, headers)
  if #headers == 0 then return true end
  local values, isOurs, bytes = {}, {}, 0
  for at, each in ipairs(headers) do
    isOurs[each.plain] = true
    local value = claimAt(claims, each.steps)
    if value ~= nil then
      values[at] = headerText(value)
      if values[at] == nil then return false end
      bytes = bytes + #each.name + #values[at] + 4
    end
  end
  if bytes > MOST_ADDED_BYTES then return false end
  local http, hasConnection = txn.http, false
  for name in namesOfHeaders(txn) do
    if isOurs[plainName(name)] then http:req_del_header(name) end
    hasConnection = hasConnection or name:lower() == 'connection'
  end
  for at, each in ipairs(headers) do
    if values[at] ~= nil then
      http:req_add_header(each.name, values[at])
      -- HAProxy had no room for it.
      if txn.f:req_fhdr_cnt(each.name) ~= 1 then return false end
    end
  end
  if hasConnection then cleanConnection(txn) end
  return true
end

local function removeToken(txn, wanted)
  if wanted.place == 'cookie' then removeCookie(txn, wanted.name) else txn.http:req_del_header(wanted.name) end
end

-- Only after HAProxy has verified the signature.
core.register_action('claims', { 'http-req' }, function(txn)
  local payload = txn:get_var('txn.token'):match('^[^.]+%.([^.]+)%.')
  local claims = parsedClaims(txn.c:ub64dec(payload) or '')
  local wanted = parsed(txn:get_var('txn.jwt'))
  if not claims or not isMeantForUs(claims, wanted) then return end
  -- First, because a claim may get the header of the token.
  if wanted.isRemoved then removeToken(txn, wanted) end
  if giveToMember(txn, claims, wanted.headers) then
    if type(claims.sub) == 'string' then txn:set_var('txn.user', claims.sub) end
    txn:set_var('txn.decision', 'passed token')
    txn:set_var('txn.token_answer', 'yes')
  end
end)
